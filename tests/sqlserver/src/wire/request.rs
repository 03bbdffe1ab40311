//! Requests as messages have them: batches, procedure calls, the transaction manager's.
//!
//! [MS-TDS] "SQLBatch", "RPC Request", "Transaction Manager Request", "ALL_HEADERS".

use super::bytes::{Malformed, Reader, utf16};
use super::packet::{Kind, Message};
use super::parameter;
use crate::session::{Isolation, Parameter, Request};

/// Names of the procedures that are called by number, from 1 on.
const PROCEDURES: [&str; 15] = [
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];

const BY_NUMBER: u16 = 0xffff;
const NO_METADATA: u16 = 0x0002;
const OUTPUT: u8 = 0x01;
const DEFAULT: u8 = 0x02;
const ENCRYPTED: u8 = 0x08;
/// Between the calls of a message; the second says that the next call is not to be executed.
const NEXT_CALL: u8 = 0xff;
const NEXT_CALL_UNEXECUTED: u8 = 0xfe;
const TRANSACTION_HEADER: u16 = 2;

/// A request, and what its answer has to know of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) request: Request,
    /// The client knows the columns and wants no description of them.
    pub(crate) no_metadata: bool,
}

impl Call {
    fn of(request: Request) -> Vec<Self> {
        vec![Self { request, no_metadata: false }]
    }
}

/// The requests of a message. `transaction` is the descriptor of the open one, or 0.
pub(crate) fn parse(message: &Message, transaction: u64) -> Result<Vec<Call>, Malformed> {
    let mut reader = Reader::new(&message.bytes);
    check_transaction(all_headers(&mut reader)?, transaction)?;
    match message.kind {
        Kind::Batch => Ok(Call::of(Request::Batch(utf16(reader.take_rest())?))),
        Kind::Rpc => calls(reader),
        Kind::TransactionManager => Ok(Call::of(transaction_request(&mut reader)?)),
        other => Err(Malformed::stream(format!("A message of {other:?} is no request."))),
    }
}

/// The transaction descriptor that the client says it works in.
fn all_headers(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let total = reader.u32()? as usize;
    let missing = || Malformed::stream("The message does not say which transaction it belongs to.");
    let mut headers = Reader::new(reader.take(total.checked_sub(4).ok_or_else(missing)?)?);
    let mut transaction = None;
    while !headers.is_empty() {
        let length = headers.u32()? as usize;
        let kind = headers.u16()?;
        let mut data = Reader::new(headers.take(length.checked_sub(6).ok_or_else(missing)?)?);
        if kind == TRANSACTION_HEADER {
            transaction = Some(data.u64()?);
            // How many requests are outstanding: one, without several results at a time.
            data.u32()?;
        }
    }
    transaction.ok_or_else(missing)
}

fn check_transaction(said: u64, open: u64) -> Result<(), Malformed> {
    if said == open {
        return Ok(());
    }
    let text = format!(
        "New request is not allowed to start because it should come with valid transaction descriptor: \
         it came with {said}, the open transaction is {open}."
    );
    Err(Malformed { number: 3989, text })
}

fn calls(mut reader: Reader<'_>) -> Result<Vec<Call>, Malformed> {
    let mut calls = vec![call(&mut reader)?];
    while !reader.is_empty() {
        if reader.u8()? == NEXT_CALL_UNEXECUTED {
            return Err(Malformed::stream("Calls that are not to be executed are not supported by this server."));
        }
        // Some clients end the last call, too.
        if !reader.is_empty() {
            calls.push(call(&mut reader)?);
        }
    }
    Ok(calls)
}

fn call(reader: &mut Reader<'_>) -> Result<Call, Malformed> {
    let length = reader.u16()?;
    let name = if length == BY_NUMBER {
        let number = usize::from(reader.u16()?);
        let name = number.checked_sub(1).and_then(|n| PROCEDURES.get(n));
        name.ok_or_else(|| Malformed {
            number: 2812,
            text: format!("There is no procedure with the number {number}."),
        })?
        .to_string()
    } else {
        utf16(reader.take(2 * usize::from(length))?)?
    };
    let no_metadata = reader.u16()? & NO_METADATA != 0;
    let mut parameters = Vec::new();
    while !matches!(reader.peek(), None | Some(NEXT_CALL | NEXT_CALL_UNEXECUTED)) {
        let number = parameters.len() + 1;
        let place = |p: &str| format!("Procedure {name}, parameter {number} (\"{p}\"): ");
        let parameter_name = reader.short_text()?;
        let status = reader.u8()?;
        if status & ENCRYPTED != 0 {
            return Err(Malformed::stream(place(&parameter_name) + "Encrypted parameters are not supported."));
        }
        let (kind, value) = parameter::read(reader)
            .map_err(|error| Malformed { number: error.number, text: place(&parameter_name) + &error.text })?;
        if status & DEFAULT == 0 {
            parameters.push(Parameter { name: parameter_name, kind, value, output: status & OUTPUT != 0 });
        } else if parameter_name.is_empty() {
            // By place, its absence would move those after it.
            let text = place("") + "A default is taken by a parameter with a name only.";
            return Err(Malformed { number: 8009, text });
        }
    }
    Ok(Call { request: Request::Procedure { name, parameters }, no_metadata })
}

fn transaction_request(reader: &mut Reader<'_>) -> Result<Request, Malformed> {
    const BEGIN: u16 = 5;
    const COMMIT: u16 = 7;
    const ROLLBACK: u16 = 8;
    const SAVE: u16 = 9;
    let request = match reader.u16()? {
        BEGIN => Request::Begin { isolation: isolation(reader.u8()?)?, name: transaction_name(reader)? },
        COMMIT => Request::Commit { name: transaction_name(reader)?, then_begin: then_begin(reader)? },
        ROLLBACK => Request::Rollback { name: transaction_name(reader)?, then_begin: then_begin(reader)? },
        SAVE => Request::Save { name: transaction_name(reader)? },
        other => {
            let text = format!("Request {other} of the transaction manager is not supported: transactions are local.");
            return Err(Malformed { number: 8501, text });
        }
    };
    if reader.is_empty() {
        return Ok(request);
    }
    let text = format!("{} bytes follow a request of the transaction manager.", reader.remaining());
    Err(Malformed::stream(text))
}

/// `B_VARBYTE`: the length counts bytes, not characters.
fn transaction_name(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let bytes = usize::from(reader.u8()?);
    utf16(reader.take(bytes)?).map_err(|error| {
        Malformed::stream(format!("The length of a transaction's name counts bytes, not characters: {}", error.text))
    })
}

/// Whether another transaction begins at once, which it does as the session's settings say.
fn then_begin(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    if reader.u8()? & 1 == 0 {
        return Ok(false);
    }
    let (isolation, name) = (isolation(reader.u8()?)?, transaction_name(reader)?);
    if isolation.is_none() && name.is_empty() {
        return Ok(true);
    }
    let text = "A transaction that begins with the end of another has no name and no isolation level of its own here.";
    Err(Malformed::stream(text))
}

fn isolation(byte: u8) -> Result<Option<Isolation>, Malformed> {
    Ok(match byte {
        0 => None,
        1 => Some(Isolation::ReadUncommitted),
        2 => Some(Isolation::ReadCommitted),
        3 => Some(Isolation::RepeatableRead),
        4 => Some(Isolation::Serializable),
        5 => Some(Isolation::Snapshot),
        other => return Err(Malformed::stream(format!("There is no isolation level {other}."))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SqlType;
    use crate::value::SqlValue;
    use crate::wire::packet::Reset;

    fn message(kind: Kind, transaction: u64, rest: &[u8]) -> Message {
        let mut bytes = vec![22, 0, 0, 0, 18, 0, 0, 0, 2, 0];
        bytes.extend(transaction.to_le_bytes());
        bytes.extend([1, 0, 0, 0]);
        bytes.extend(rest);
        Message { kind, reset: Reset::No, bytes }
    }

    fn request(kind: Kind, rest: &[u8]) -> Result<Request, Malformed> {
        parse(&message(kind, 0, rest), 0).map(|mut calls| calls.remove(0).request)
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_batch_is_the_text_after_the_headers() {
        assert_eq!(request(Kind::Batch, &wide("SELECT 'ü'")), Ok(Request::Batch("SELECT 'ü'".into())));
    }

    #[test]
    fn a_request_of_another_transaction_is_refused() {
        let bytes = wide("SELECT 1");
        assert_eq!(parse(&message(Kind::Batch, 7, &bytes), 7).unwrap().len(), 1);
        assert_eq!(parse(&message(Kind::Batch, 0, &bytes), 7).unwrap_err().number, 3989);
        let without = Message { kind: Kind::Batch, reset: Reset::No, bytes: vec![4, 0, 0, 0] };
        assert!(parse(&without, 0).unwrap_err().text.contains("which transaction"));
        let too_long = Message { kind: Kind::Batch, reset: Reset::No, bytes: vec![255; 22] };
        assert_eq!(parse(&too_long, 0).unwrap_err().number, 4002);
    }

    #[test]
    fn a_message_may_hold_several_calls() {
        let mut bytes = vec![0xff, 0xff, 10, 0, 0, 0];
        // Without a name, and by name for output.
        bytes.extend([0, 0, 0x38, 5, 0, 0, 0]);
        bytes.extend([2, b'@', 0, b'a', 0, OUTPUT, 0x26, 4, 0]);
        bytes.push(NEXT_CALL);
        bytes.extend([4, 0]);
        bytes.extend(wide("proc"));
        bytes.extend([2, 0]);
        bytes.extend([2, b'@', 0, b'b', 0, DEFAULT, 0x26, 4, 0]);
        let calls = parse(&message(Kind::Rpc, 0, &bytes), 0).unwrap();
        let parameter = |name: &str, value, output| Parameter { name: name.into(), kind: SqlType::Int, value, output };
        let first = vec![parameter("", SqlValue::Int(5), false), parameter("@a", SqlValue::Null, true)];
        let expected = [
            Call {
                request: Request::Procedure { name: "sp_executesql".into(), parameters: first },
                no_metadata: false,
            },
            Call { request: Request::Procedure { name: "proc".into(), parameters: vec![] }, no_metadata: true },
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_parameter_that_is_not_understood_is_named() {
        let mut bytes = vec![0xff, 0xff, 12, 0, 0, 0];
        bytes.extend([2, b'@', 0, b'a', 0, 0, 0xf3]);
        let error = request(Kind::Rpc, &bytes).unwrap_err();
        assert!(error.text.contains("Procedure sp_execute, parameter 1 (\"@a\"): Table-valued"), "{error}");
        assert_eq!(request(Kind::Rpc, &[0xff, 0xff, 16, 0, 0, 0]).unwrap_err().number, 2812);
    }

    #[test]
    fn requests_of_the_transaction_manager_are_read() {
        let name = |text: &str| [&[2 * text.len() as u8][..], &wide(text)].concat();
        let begin = [&[5, 0, 5][..], &name("t1")].concat();
        let expected = Request::Begin { isolation: Some(Isolation::Snapshot), name: "t1".into() };
        assert_eq!(request(Kind::TransactionManager, &begin), Ok(expected));
        let commit = [7, 0, 0, 0];
        assert_eq!(
            request(Kind::TransactionManager, &commit),
            Ok(Request::Commit { name: String::new(), then_begin: false })
        );
        let rollback = [8, 0, 0, 1, 0, 0];
        assert_eq!(
            request(Kind::TransactionManager, &rollback),
            Ok(Request::Rollback { name: String::new(), then_begin: true })
        );
        let save = [&[9, 0][..], &name("sp")].concat();
        assert_eq!(request(Kind::TransactionManager, &save), Ok(Request::Save { name: "sp".into() }));
        assert_eq!(request(Kind::TransactionManager, &[6, 0]).unwrap_err().number, 8501);
        assert!(request(Kind::TransactionManager, &[5, 0, 9, 0]).is_err());
    }

    #[test]
    fn the_length_of_a_transactions_name_counts_bytes() {
        let characters = [&[9, 0, 3][..], &wide("abc")].concat();
        let error = request(Kind::TransactionManager, &characters).unwrap_err();
        assert!(error.text.contains("counts bytes, not characters"), "{error}");
        let even = [&[9, 0, 2][..], &wide("ab")].concat();
        assert!(request(Kind::TransactionManager, &even).unwrap_err().text.contains("2 bytes follow"));
    }
}
