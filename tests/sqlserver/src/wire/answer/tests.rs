use super::*;
use crate::session::Parameter;

struct Answered {
    packets: Vec<Vec<u8>>,
    finish: Finish,
}

impl Answered {
    /// All bytes, as the connection ends them.
    fn bytes(mut self) -> Vec<u8> {
        self.packets.push(self.finish.bytes(false));
        self.packets.concat()
    }
}

fn answer(calls: &[Call], payload: usize, run: impl Fn(&mut AnswerWriter)) -> Answered {
    let (sender, mut receiver) = mpsc::channel(1000);
    let mut writer = AnswerWriter::new("s".into(), payload, sender, Arc::default(), 0);
    for call in calls {
        writer.begin(call);
        run(&mut writer);
        writer.end();
    }
    let finish = writer.finish();
    let mut packets = Vec::new();
    while let Some(packet) = receiver.blocking_recv() {
        packets.push(packet);
    }
    Answered { packets, finish }
}

fn batch() -> [Call; 1] {
    [Call { request: Request::Batch(String::new()), no_metadata: false }]
}

fn procedure(parameters: Vec<Parameter>) -> Call {
    Call { request: Request::Procedure { name: "p".into(), parameters }, no_metadata: false }
}

fn int(nullable: bool) -> [Column; 1] {
    [Column { name: String::new(), kind: SqlType::Int, nullable, identity: false, computed: false }]
}

fn error_message() -> Message {
    Message { number: 50000, state: 1, class: 16, text: String::new(), procedure: String::new(), line: 1 }
}

const DONE_REST: usize = 10;

/// Kinds and statuses of the DONE tokens in an answer that has nothing else but fixed tokens around.
fn dones(bytes: &[u8]) -> Vec<(u8, u16)> {
    bytes
        .windows(3)
        .enumerate()
        .filter(|(at, w)| w[0] >= 0xfd && w[2] == 0 && bytes.len() >= at + 3 + DONE_REST)
        .map(|(_, w)| (w[0], u16::from(w[1])))
        .collect()
}

#[test]
fn every_statement_but_the_last_announces_more() {
    let bytes = answer(&batch(), 504, |a| {
        a.done(Some(1)).unwrap();
        a.message(&error_message()).unwrap();
        a.done(None).unwrap();
        a.done(Some(2)).unwrap();
    })
    .bytes();
    assert_eq!(dones(&bytes), [(0xfd, 0x11), (0xfd, 0x03), (0xfd, 0x10)]);
    assert_eq!(dones(&answer(&batch(), 504, |_| {}).bytes()), [(0xfd, 0)]);
}

#[test]
fn an_error_after_the_last_statement_has_an_end_that_tells_it() {
    let answered = answer(&batch(), 504, |a| {
        a.done(Some(1)).unwrap();
        a.message(&error_message()).unwrap();
    });
    assert_eq!(dones(&answered.bytes()), [(0xfd, 0x11), (0xfd, 0x02)]);
}

#[test]
fn calls_end_one_by_one_with_their_statements_inside() {
    let bytes = answer(&[procedure(vec![]), procedure(vec![])], 504, |a| {
        a.done(Some(1)).unwrap();
        a.status(0).unwrap();
    })
    .bytes();
    assert_eq!(dones(&bytes), [(0xff, 0x11), (0xfe, 0x01), (0xff, 0x11), (0xfe, 0)]);
}

#[test]
fn outputs_have_the_place_of_their_parameter() {
    let parameter =
        |name: &str, output| Parameter { name: name.into(), kind: SqlType::Int, value: SqlValue::Null, output };
    let call = procedure(vec![parameter("", true), parameter("stmt", false), parameter("@b", true)]);
    let bytes = answer(&[call], 504, |a| {
        a.output("@B", &SqlType::Int, &SqlValue::Int(2)).unwrap();
        a.output("@handle", &SqlType::Int, &SqlValue::Int(1)).unwrap();
    })
    .bytes();
    assert_eq!(bytes[..4], [0xac, 2, 0, 2]);
    let second = bytes.iter().skip(1).position(|b| *b == 0xac).unwrap() + 1;
    assert_eq!(bytes[second..second + 4], [0xac, 0, 0, 7]);
}

#[test]
fn packets_are_full_and_the_last_bytes_wait_for_the_end() {
    let answered = answer(&batch(), 504, |a| {
        a.columns(&int(false)).unwrap();
        for number in 0..1000 {
            a.row(&[SqlValue::Int(number)]).unwrap();
        }
    });
    assert!(answered.packets.iter().all(|p| p.len() == 504));
    let rest = answered.finish.rest.len();
    assert!((1..=504).contains(&rest), "{rest}");
    assert_eq!(answered.packets.len() * 504 + rest, 11 + 1000 * 5);
}

#[test]
fn a_value_that_cannot_be_sent_becomes_an_error_between_whole_tokens() {
    let bytes = answer(&batch(), 504, |a| {
        a.columns(&int(false)).unwrap();
        a.row(&[SqlValue::Int(1)]).unwrap();
        assert_eq!(a.row(&[SqlValue::Null]), Err(Cancelled));
    })
    .bytes();
    assert_eq!(bytes[11..17], [0xd1, 1, 0, 0, 0, 0xaa]);
    assert_eq!(dones(&bytes[17..]), [(0xfd, 2)]);
}

#[test]
fn nothing_follows_a_cancellation_but_ends_of_transactions() {
    let (sender, _receiver) = mpsc::channel(1);
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut writer = AnswerWriter::new("s".into(), 504, sender, cancelled.clone(), 9);
    writer.begin(&batch()[0]);
    cancelled.store(true, Ordering::Release);
    assert_eq!(writer.columns(&int(true)), Err(Cancelled));
    assert_eq!(writer.done(None), Err(Cancelled));
    assert_eq!(writer.change(&Change::RolledBack(9)), Ok(()));
    let finish = writer.finish();
    assert_eq!(finish.transaction, 0);
    let bytes = finish.bytes(true);
    assert_eq!(bytes[..4], [0xe3, 11, 0, 10]);
    assert_eq!(bytes[14..17], [0xfd, 2, 0]);
}
