#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::commit::CommitLimits;
use crate::lease::{LeaseTerms, SystemClock};
use crate::raft::Unit;
use crate::raft::command::{OffsetChange, PartitionText, TargetState};
use crate::raft::local::LocalLog;
use crate::raft::state::world::{World, name};

struct Node {
    port: NodePort,
    log: Arc<LocalLog>,
    epoch: Epoch,
    revision: u64,
    stop: CancellationToken,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn node() -> Node {
    let log = LocalLog::new();
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    log.view.install(w.index, w.state.clone());
    for _ in 0..w.index {
        log.apply(CommandV1::SetFeatureLevel { level: 1 });
    }
    let incarnation = watch::Sender::new(Some(w.incarnation(1)));
    let guard = Arc::new(LeaseGuard::new(LeaseTerms::default(), Arc::new(SystemClock)));
    let reports = Arc::new(Coalescer::new(1, incarnation.subscribe(), log.clone(), CommitLimits::default()));
    let stop = CancellationToken::new();
    let (running, token) = (reports.clone(), stop.clone());
    tokio::spawn(async move {
        let _keep = incarnation;
        running.run(token).await;
    });
    let port = NodePort {
        group: "g".into(),
        view: log.view.clone(),
        proposer: log.clone(),
        reports,
        guard,
        topic_tracking: true,
    };
    let epoch = Epoch(w.placement(&Unit::connector("c")).epoch);
    Node { port, log, epoch, revision: w.state.connectors["c"].revision, stop }
}

#[tokio::test]
async fn tasks_are_published_once_and_by_the_owner_only() {
    let node = node();
    let connector: Arc<str> = "c".into();
    let publish = |epoch, revision, tasks| node.port.publish_tasks(&connector, epoch, revision, tasks);
    publish(node.epoch, node.revision, World::tasks(1, "a")).await.unwrap();
    assert!(node.log.proposed.borrow().is_empty(), "they are the present ones");
    publish(node.epoch, node.revision, World::tasks(2, "a")).await.unwrap();
    assert_eq!(node.log.view.read().connectors["c"].tasks.len(), 2);
    let stale = publish(Epoch(1), node.revision, World::tasks(3, "a")).await.unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Fenced);
    let overtaken = publish(node.epoch, node.revision - 1, World::tasks(3, "a")).await.unwrap_err();
    assert_eq!(overtaken.kind, ErrorKind::SourceBusy);
    assert!(overtaken.message.contains("connector c"), "{overtaken}");
    node.log.fail(Some(ProposeError::NoLeader));
    let alone = publish(node.epoch, node.revision, World::tasks(3, "a")).await.unwrap_err();
    assert_eq!(alone.kind, ErrorKind::QuorumLost);
    let unknown: Arc<str> = "x".into();
    node.log.fail(None);
    let gone = node.port.publish_tasks(&unknown, node.epoch, 1, Vec::new()).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::Fenced);
}

/// RUN-14: an empty or null row counts as no offset; members that are null stay.
#[tokio::test]
async fn run_14_empty_offset_entries() {
    let node = node();
    let part = |text: &str| SourcePartition::new([("server", text)]);
    node.log.apply(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
    let epoch = node.log.view.read().placements[&Unit::task("c", 0)].epoch;
    node.port.released(&UnitId::Task("c".into(), 0), Epoch(epoch));
    node.log.until("released", |s| !s.placements.contains_key(&Unit::task("c", 0))).await;
    let row = |text: &str, offset: &str| {
        let partition = part(text);
        let text =
            PartitionText { canonical: partition.canonical().to_string(), original: partition.original().to_string() };
        (text, Some(offset.to_owned()))
    };
    let rows = vec![
        row("null", "null"),
        row("empty", "{}"),
        row("damaged", "{\"a\":"),
        row("members", "{\"commit_lsn\":\"1\",\"change_lsn\":null}"),
    ];
    let reply = node.log.apply(CommandV1::AlterOffsets {
        name: name("c"),
        expect_revision: None,
        change: OffsetChange::Set(rows),
    });
    assert!(matches!(reply, Reply::OffsetsAltered { .. }), "{reply:?}");
    let offsets = node.port.offsets(&"c".into());
    for text in ["null", "empty", "damaged", "absent"] {
        assert_eq!(offsets.offset(&part(text)), None, "{text}");
    }
    let expected = json!({ "commit_lsn": "1", "change_lsn": null });
    assert_eq!(offsets.offset(&part("members")).as_ref(), expected.as_object());
    // Member order of the one who asks does not matter.
    let reader = node.port.offsets(&"other".into());
    assert_eq!(reader.offset(&part("members")), None, "offsets belong to a connector");
}

#[tokio::test]
async fn a_topic_is_reported_once_until_it_is_reset() {
    let node = node();
    let (connector, topic): (Arc<str>, Arc<str>) = ("c".into(), "t".into());
    node.port.topic_used(&connector, &topic);
    node.log.until("kept", |s| s.topics.contains_key("c")).await;
    let sent = node.log.proposed.borrow().len();
    node.port.topic_used(&connector, &topic);
    node.port.commit(OffsetCommit {
        unit: UnitId::Task("c".into(), 0),
        epoch: Epoch(node.log.view.read().placements[&Unit::task("c", 0)].epoch),
        partition: SourcePartition::new([("p", "1")]),
        offset: json!({"n": 1}).as_object().unwrap().clone(),
        seq: 1,
    });
    node.port.settled(&UnitId::Task("c".into(), 0)).await.unwrap();
    let all = node.log.proposed.borrow().clone();
    assert_eq!(all.len(), sent + 1);
    assert!(matches!(&all[sent], crate::raft::Command::V1(CommandV1::Report { topics, .. }) if topics.is_empty()));
    node.log.apply(CommandV1::ResetTopics { name: name("c") });
    node.port.topic_used(&connector, &topic);
    node.log.until("kept again", |s| s.topics.contains_key("c")).await;
}

#[tokio::test]
async fn signals_are_handed_on_in_their_order_until_they_are_confirmed() {
    let node = node();
    let put = |id: &str| {
        let text = crate::raft::command::SignalText(format!("{{\"id\":\"{id}\",\"type\":\"log\"}}"));
        node.log.apply(CommandV1::PutSignal { name: name("c"), id: id.into(), text, now_ms: 5 })
    };
    let connector: Arc<str> = "c".into();
    let given = |after| node.port.signals(&connector, after);
    assert!(given(0).is_empty() && !node.port.keeps_signals(&connector, i64::MAX));
    put("a");
    put("b");
    let signals = given(0);
    assert_eq!(signals.iter().flat_map(|s| &s.signal).map(|s| &*s.id).collect::<Vec<_>>(), ["a", "b"]);
    let (first, last) = (signals[0].mark.number, signals[1].mark.number);
    assert_eq!((signals[0].mark.channel, signals[0].mark.time_ms, first < last), ("rest", 5, true));
    assert_eq!(given(first)[..], signals[1..]);
    let unit = UnitId::Task("c".into(), 0);
    let epoch = Epoch(node.log.view.read().placements[&Unit::task("c", 0)].epoch);
    let stale = node.port.confirm_signals(&unit, Epoch(epoch.0 + 1), last).await.unwrap_err();
    assert_eq!(stale.kind, thalweg_core::ErrorKind::Fenced);
    node.port.confirm_signals(&unit, epoch, first).await.unwrap();
    assert!(!node.port.keeps_signals(&connector, first) && node.port.keeps_signals(&connector, last));
    node.port.confirm_signals(&unit, epoch, last).await.unwrap();
    assert!(given(0).is_empty());
}

#[tokio::test]
async fn the_lease_shows_through() {
    let node = node();
    assert!(!node.port.lease_held());
    node.port.lease_lost().await;
    node.port.guard.begin(1);
    let seq = node.port.guard.sending(1).unwrap();
    node.port.guard.granted(seq);
    assert!(node.port.lease_held());
    assert!(tokio::time::timeout(Duration::from_millis(20), node.port.lease_lost()).await.is_err());
    node.port.guard.drop_lease();
    node.port.lease_lost().await;
    assert_eq!(&**node.port.group(), "g");
}

/// A connector without a place for its schema history.
#[tokio::test]
async fn a_schema_history_is_known_here_when_it_is_written_and_belongs_to_the_owner() {
    let node = node();
    let unit = UnitId::Task("c".into(), 0);
    let epoch = Epoch(node.log.view.read().placements[&Unit::from(&unit)].epoch);
    let partition = SourcePartition::new([("server", "s1"), ("database", "shop")]);
    let kept = || node.port.history(unit.connector(), &partition);
    assert_eq!(kept(), KeptHistory::default());
    let append = |epoch, text: &str| {
        let text: Arc<str> = text.into();
        let (port, unit, partition) = (&node.port, &unit, &partition);
        async move { port.append_history(unit, epoch, partition, text).await }
    };
    let refused = append(epoch, "1").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Config, "a node of an earlier release is there");
    assert!(refused.message.contains("Feature level 3 is not possible"), "{refused}");
    let mut state = node.log.view.read().clone();
    state.nodes.get_mut(&1).unwrap().about.feature_level = 3;
    node.log.view.install(node.log.view.applied(), state);
    for text in ["1", "2", "3"] {
        append(epoch, text).await.unwrap();
    }
    assert_eq!(kept().texts.iter().map(|text| &**text).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(append(Epoch(epoch.0 - 1), "4").await.unwrap_err().kind, ErrorKind::Fenced);
    // More than fits into one entry.
    let large: Arc<str> = "x".repeat(3 << 20).into();
    let fold = |first, texts: &[Arc<str>]| {
        let (port, unit, partition, texts) = (&node.port, &unit, &partition, texts.to_vec());
        async move { port.fold_history(unit, epoch, partition, first, texts).await }
    };
    let before = node.log.proposed.borrow().len();
    fold((2, 0), &[large.clone(), large.clone(), large.clone()]).await.unwrap();
    assert_eq!(node.log.proposed.borrow().len(), before + 4);
    assert_eq!(kept().texts.iter().map(|text| text.len()).collect::<Vec<_>>(), [3 << 20, 3 << 20, 3 << 20, 1]);
    assert_eq!(fold((1, 0), &[]).await.unwrap_err().kind, ErrorKind::SourceBusy, "it was folded since");
    fold((3, kept().folded), &[]).await.unwrap();
    assert_eq!(kept().texts, ["3".into()]);
    node.log.fail(Some(ProposeError::NoLeader));
    let alone = append(epoch, "5").await.unwrap_err();
    assert_eq!(alone.kind, ErrorKind::QuorumLost);
    assert!(alone.message.contains("task c-0"), "{alone}");
}
