//! Measures producers against a real broker on this machine.
//!
//!     cargo run --release -p thalweg-kafka --example producer_rate -- send <plain|fenced> [messages] [bytes]
//!     cargo run --release -p thalweg-kafka --example producer_rate -- idle <plain|fenced> [producers]
//!     cargo run --release -p thalweg-kafka --example producer_rate -- single <plain|fenced> [messages]
//!     cargo run --release -p thalweg-kafka --example producer_rate -- takeover <plain|fenced> [times]
//!
//! `send` prints messages per second, per CPU second of this process, and how often and how long the
//! sender had to wait. `idle` prints memory, threads and CPU of that many producers doing nothing.
//! `single` prints how long one record takes from hand-over to acknowledgement when it is flushed at
//! once: in `fenced` mode the least that a transaction takes. `takeover` prints how long opening takes
//! while the former owner of the same task has records on their way. Arguments with `=` are worker
//! properties.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::delivery::{
    Acks, DeliveryMode, EncodedHeaders, Message, Producer, ProducerFactory, ProducerIdentity, Refused,
};
use thalweg_kafka::KafkaSinks;
use thalweg_services::Broker;

#[derive(Default)]
struct Count {
    acked: AtomicU64,
}

impl Acks for Count {
    fn delivered(&self, _: u64) {
        self.acked.fetch_add(1, Ordering::Relaxed);
    }
    fn delivered_below(&self, next: u64) {
        self.acked.store(next, Ordering::Relaxed);
    }
    fn failed(&self, seq: u64, error: Error) {
        eprintln!("{seq} failed: {error}");
    }
}

fn identity(task: u32) -> ProducerIdentity {
    ProducerIdentity { group: Arc::from("rate"), connector: Arc::from("rate"), task }
}

/// User and system time of this process.
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn status(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with(name)).context("status")?;
    Ok(line.split_whitespace().nth(1).context("value")?.parse()?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize| args.iter().filter(|a| !a.contains('=')).nth(at).map(String::as_str);
    let mode = match text(1) {
        Some("plain") => DeliveryMode::Plain,
        Some("fenced") => DeliveryMode::Fenced,
        other => bail!("mode plain or fenced, not {other:?}"),
    };
    let number = |at: usize, default: u64| text(at).map_or(Ok(default), str::parse);
    let broker = Broker::start().await?;
    let mut worker = Properties::from([("bootstrap.servers", broker.bootstrap().as_str())]);
    for setting in args.iter().filter_map(|a| a.split_once('=')) {
        worker.set(setting.0, setting.1);
    }
    let sinks = KafkaSinks::new(worker);
    match text(0) {
        Some("send") => {
            for round in 0..3 {
                send(&sinks, mode, number(2, 300_000)?, number(3, 1024)? as usize, round).await?;
            }
            Ok(())
        }
        Some("idle") => idle(&sinks, mode, number(2, 20)? as u32).await,
        Some("single") => single(&sinks, mode, number(2, 200)?).await,
        Some("takeover") => takeover(&sinks, mode, number(2, 10)?).await,
        other => bail!("send, idle, single or takeover, not {other:?}"),
    }
}

async fn send(sinks: &KafkaSinks, mode: DeliveryMode, messages: u64, bytes: usize, round: u32) -> Result<()> {
    let acks = Arc::new(Count::default());
    let opened = Instant::now();
    let mut producer = sinks.open(identity(round), mode, &Properties::new(), acks.clone()).await?;
    let topic: Arc<str> = Arc::from(format!("rate.{round}"));
    producer.prepare_topic(&topic).await?;
    let opened = opened.elapsed();
    let (value, headers) = (vec![b'x'; bytes], EncodedHeaders::default());
    let (started, cpu_before) = (Instant::now(), cpu()?);
    let (mut waits, mut waited, mut longest) = (0u64, Duration::ZERO, Duration::ZERO);
    for seq in 0..messages {
        let key = seq.to_le_bytes();
        let message = Message {
            topic: &topic,
            partition: None,
            key: Some(&key),
            value: Some(&value),
            headers: &headers,
            timestamp: None,
        };
        loop {
            match producer.try_send(seq, &message) {
                Ok(()) => break,
                Err(Refused::Failed(error)) => return Err(error.into()),
                Err(Refused::Full) => {
                    let since = Instant::now();
                    producer.room().await;
                    let took = since.elapsed();
                    (waits, waited, longest) = (waits + 1, waited + took, longest.max(took));
                }
            }
        }
    }
    release(&mut *producer).await?;
    producer.flush(Duration::from_secs(60)).await?;
    let (took, used) = (started.elapsed(), cpu()? - cpu_before);
    let rate = |over: Duration| messages as f64 / over.as_secs_f64();
    println!(
        "{mode:?}: opened in {} ms, {:.0} messages/s, {:.0} per CPU second, {waits} waits, {} ms in total, longest {} ms, {} acknowledged, peak {} MiB",
        opened.as_millis(),
        rate(took),
        rate(used),
        waited.as_millis(),
        longest.as_millis(),
        acks.acked.load(Ordering::Relaxed),
        status("VmHWM")? / 1024,
    );
    Ok(())
}

async fn idle(sinks: &KafkaSinks, mode: DeliveryMode, producers: u32) -> Result<()> {
    const WATCHED: Duration = Duration::from_secs(10);
    let (memory, threads) = (status("VmRSS")?, status("Threads")?);
    let mut open = Vec::new();
    for task in 0..producers {
        let mut producer = sinks.open(identity(task), mode, &Properties::new(), Arc::new(Count::default())).await?;
        let topic: Arc<str> = Arc::from("idle");
        producer.prepare_topic(&topic).await?;
        let message = Message {
            topic: &topic,
            partition: None,
            key: None,
            value: Some(b"x"),
            headers: &EncodedHeaders::default(),
            timestamp: None,
        };
        while let Err(refused) = producer.try_send(0, &message) {
            match refused {
                Refused::Full => producer.room().await,
                Refused::Failed(error) => return Err(error.into()),
            }
        }
        release(&mut *producer).await?;
        producer.flush(Duration::from_secs(10)).await?;
        open.push(producer);
    }
    let before = cpu()?;
    tokio::time::sleep(WATCHED).await;
    let used = cpu()? - before;
    println!(
        "{mode:?}: {producers} producers, {} threads, {} KiB each, {:.2} % of a core",
        status("Threads")? - threads,
        (status("VmRSS")? - memory) / u64::from(producers.max(1)),
        used.as_secs_f64() * 100.0 / WATCHED.as_secs_f64(),
    );
    let started = Instant::now();
    drop(open);
    let dropped = started.elapsed();
    thalweg_services::until("the producers' threads have ended", Duration::from_secs(10), || async {
        Ok((status("Threads")? <= threads).then_some(()))
    })
    .await?;
    println!("dropped in {} us, closed after {} ms", dropped.as_micros(), started.elapsed().as_millis());
    Ok(())
}

async fn single(sinks: &KafkaSinks, mode: DeliveryMode, messages: u64) -> Result<()> {
    let mut producer = sinks.open(identity(0), mode, &Properties::new(), Arc::new(Count::default())).await?;
    let topic: Arc<str> = Arc::from("single");
    producer.prepare_topic(&topic).await?;
    let headers = EncodedHeaders::default();
    let mut took = Vec::new();
    for seq in 0..messages {
        let message = Message {
            topic: &topic,
            partition: None,
            key: None,
            value: Some(b"x"),
            headers: &headers,
            timestamp: None,
        };
        let started = Instant::now();
        while let Err(Refused::Full) = producer.try_send(seq, &message) {
            producer.room().await;
        }
        release(&mut *producer).await?;
        producer.flush(Duration::from_secs(10)).await?;
        took.push(started.elapsed());
    }
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_micros();
    println!("{mode:?}: p50 {} us, p99 {} us, longest {} us", at(0.5), at(0.99), at(1.0));
    Ok(())
}

async fn takeover(sinks: &KafkaSinks, mode: DeliveryMode, times: u64) -> Result<()> {
    let topic: Arc<str> = Arc::from("takeover");
    let slow = Properties::from([("thalweg.fenced.commit.ms", "60000")]);
    let headers = EncodedHeaders::default();
    let mut former = Vec::new();
    for time in 0..times {
        let started = Instant::now();
        let mut producer = sinks.open(identity(0), mode, &slow, Arc::new(Count::default())).await?;
        let opened = started.elapsed();
        producer.prepare_topic(&topic).await?;
        let message = Message {
            topic: &topic,
            partition: None,
            key: None,
            value: Some(b"x"),
            headers: &headers,
            timestamp: None,
        };
        while let Err(Refused::Full) = producer.try_send(0, &message) {
            producer.room().await;
        }
        producer.hand_over()?;
        // Long enough for the record to reach the broker, so that its transaction is open there.
        tokio::time::sleep(Duration::from_millis(300)).await;
        println!("{mode:?}: opening number {time} took {} ms", opened.as_millis());
        former.push(producer);
    }
    Ok(())
}

/// Sends what the producer holds back.
async fn release(producer: &mut dyn Producer) -> Result<()> {
    while producer.holds_back() {
        producer.ready().await;
        producer.hand_over()?;
    }
    Ok(())
}
