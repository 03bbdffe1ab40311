//! `snapshot.mode`: when collections are read, and whether a stream follows.

use anyhow::Result;
use bson::{Document, doc};
use futures::FutureExt;
use serde_json::json;
use thalweg_core::Policy;
use thalweg_core::signal::{Mark, Received, Signal};

use crate::fixture::run::{Offsets, Run, Seen};
use crate::fixture::{Bed, bed};

async fn with_documents(name: &str) -> Result<Bed> {
    let bed = bed(name).await?;
    bed.db.collection("a").insert_many([doc! {"_id": 1}, doc! {"_id": 2}]).await?;
    Ok(bed)
}

/// Reads what a start yields up to and including the first change.
async fn ops_until_change(bed: &Bed, run: &mut Run, next: i32) -> Result<Vec<String>> {
    let mut ops = Vec::new();
    let mut inserted = false;
    loop {
        // The stream is open once the position is one without an unfinished snapshot.
        if !inserted && run.waiting_is_empty() {
            let batch = run.advance().await?;
            if batch.is_some_and(|offset| offset.get("initsync").is_none()) {
                bed.db.collection::<Document>("a").insert_one(doc! {"_id": next}).await?;
                inserted = true;
            }
            continue;
        }
        let record = run.record().await?;
        ops.push(record.op().to_owned());
        if record.op() == "c" {
            return Ok(ops);
        }
    }
}

#[tokio::test]
async fn t_72_always_reads_at_every_start() -> Result<()> {
    let bed = with_documents("mode_always").await?;
    let config = bed.config(&[("snapshot.mode", "always")]);
    let offsets = Offsets::new();
    for start in 0..3 {
        let mut run = Run::start(&config, &offsets).await?;
        let ops = ops_until_change(&bed, &mut run, 10 + start).await?;
        let reads = usize::try_from(2 + start)?;
        assert_eq!(ops.iter().filter(|o| *o == "r").count(), reads);
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_data_and_its_older_name_only_stream() -> Result<()> {
    for mode in ["no_data", "never"] {
        let bed = with_documents(&format!("mode_{mode}")).await?;
        let mut run = Run::start(&bed.config(&[("snapshot.mode", mode)]), &Offsets::new()).await?;
        assert_eq!(ops_until_change(&bed, &mut run, 10).await?, ["c"]);
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn t_73_initial_only_reads_once_and_then_idles() -> Result<()> {
    let bed = with_documents("mode_initial_only").await?;
    let config = bed.config(&[("snapshot.mode", "initial_only")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    assert_eq!(run.take(2).await?[1].snapshot(), "last");
    bed.db.collection("a").insert_one(doc! {"_id": 3}).await?;
    // Whatever still comes moves the position only, and then nothing comes.
    idle(&mut run).await?;
    run.stop().await?;
    let mut run = Run::start(&config, &offsets).await?;
    idle(&mut run).await?;
    run.stop().await
}

/// Signals from outside are followed: a blocking snapshot needs no stream, an incremental one does.
#[tokio::test]
async fn t_73_initial_only_follows_signals_of_other_channels() -> Result<()> {
    let bed = with_documents("mode_only_signals").await?;
    let signals = format!("{}.signals", bed.db.name());
    let config = bed.config(&[
        ("snapshot.mode", "initial_only"),
        ("signal.enabled.channels", "file"),
        ("signal.data.collection", &signals),
    ]);
    let offsets = Offsets::new();
    let ask = |number: i64, kind: &str| {
        let data = json!({"data-collections": [".*\\.a"], "type": kind});
        let signal = Signal { id: kind.to_owned(), kind: "execute-snapshot".to_owned(), data };
        Received { signal: Some(signal), mark: Mark { channel: "file", series: "f".into(), number, time_ms: 0 } }
    };
    for restart in [false, true] {
        let mut run = Run::start(&config, &offsets).await?;
        if !restart {
            assert_eq!(run.take(2).await?[1].snapshot(), "last");
        }
        let number = i64::from(restart) * 2;
        run.signals.put(ask(number, "incremental"));
        run.signals.put(ask(number + 1, "blocking"));
        let read = run.take(2).await?;
        assert_eq!(read.iter().map(Seen::snapshot).collect::<Vec<_>>(), ["true", "last"]);
        // Nothing comes by itself any more: what is stored now has the effect of both.
        run.tell_stored()?;
        assert_eq!(run.signals.count_stored(), 2);
        assert!(offsets.only().get("initsync").is_none());
        run.stop().await?;
    }
    Ok(())
}

/// Reads until nothing is ready while another connector on the same server sees a change and
/// several empty answers: whoever streamed would have seen something too.
async fn idle(run: &mut Run) -> Result<()> {
    let witness = bed("mode_witness").await?;
    let mut other = Run::start(&witness.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    for _ in 0..3 {
        other.quiet().await?;
        while let Some(batch) = run.batch().now_or_never() {
            assert!(batch?.records.is_empty());
        }
    }
    other.quiet().await?;
    assert!(run.batch().now_or_never().is_none(), "still something to read");
    other.stop().await
}

#[tokio::test]
async fn configuration_based_does_what_its_flags_say() -> Result<()> {
    let bed = with_documents("mode_configured").await?;
    let config = |data: &'static str, stream: &'static str| {
        bed.config(&[
            ("snapshot.mode", "configuration_based"),
            ("snapshot.mode.configuration.based.snapshot.data", data),
            ("snapshot.mode.configuration.based.start.stream", stream),
        ])
    };
    let offsets = Offsets::new();
    for start in 0..2 {
        let mut run = Run::start(&config("true", "true"), &offsets).await?;
        let ops = ops_until_change(&bed, &mut run, 10 + start).await?;
        assert!(ops.len() > 2, "offsets are ignored: {ops:?}");
        run.stop().await?;
    }
    let mut run = Run::start(&config("false", "true"), &offsets).await?;
    assert_eq!(ops_until_change(&bed, &mut run, 20).await?, ["c"]);
    run.stop().await?;
    let mut run = Run::start(&config("false", "false"), &Offsets::new()).await?;
    idle(&mut run).await?;
    run.stop().await
}

#[tokio::test]
async fn an_unfinished_snapshot_needs_a_mode_that_reads() -> Result<()> {
    let bed = with_documents("mode_unfinished").await?;
    let unfinished = json!({"sec": -1, "ord": -1, "initsync": true});
    let stored = || Offsets::with(&[("server_id", "t")], unfinished.clone());
    for mode in ["no_data", "configuration_based"] {
        let error = Run::start(&bed.config(&[("snapshot.mode", mode)]), &stored()).await?.error().await?;
        assert!(error.to_string().contains("previously stopped while taking a snapshot"), "{error}");
        assert_eq!(error.policy(), Policy::NeedsUser);
    }
    for mode in ["initial", "when_needed", "initial_only", "always"] {
        let mut run = Run::start(&bed.config(&[("snapshot.mode", mode)]), &stored()).await?;
        let ops: Vec<String> = run.take(2).await?.iter().map(|r| r.op().to_owned()).collect();
        assert_eq!(ops, ["r", "r"], "{mode}");
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn delays_are_kept() -> Result<()> {
    let bed = with_documents("mode_delays").await?;
    let config = bed.config(&[("snapshot.delay.ms", "300"), ("streaming.delay.ms", "400")]);
    let begun = std::time::Instant::now();
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.take(2).await?;
    let read = begun.elapsed();
    assert!(read.as_millis() >= 300, "{read:?}");
    // The first answer of the stream moves the position.
    while run.quiet().await?.get("initsync").is_some() {}
    run.quiet().await?;
    assert!((begun.elapsed() - read).as_millis() >= 390, "{:?}", begun.elapsed());
    run.stop().await
}
