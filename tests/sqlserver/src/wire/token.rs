//! Tokens of answers.
//!
//! [MS-TDS] "Packet Data Token Stream Definition"; each function cites its token there.

use super::bytes::{Write, cut};
use super::scalar::Unfit;
use super::type_info::{self, Prefix};
use super::{collation, value};
use crate::session::{Change, Column, Message};
use crate::types::SqlType;
use crate::value::SqlValue;

const COLMETADATA: u8 = 0x81;
const RETURNSTATUS: u8 = 0x79;
const ERROR: u8 = 0xaa;
const INFO: u8 = 0xab;
const RETURNVALUE: u8 = 0xac;
const LOGINACK: u8 = 0xad;
const FEATUREEXTACK: u8 = 0xae;
const ROW: u8 = 0xd1;
const NBCROW: u8 = 0xd2;
const ENVCHANGE: u8 = 0xe3;

/// Characters of a message's text: `sysmessages` has no longer ones.
const MESSAGE_TEXT: usize = 2048;
/// Severity of errors from which on the connection ends.
pub(crate) const FATAL: u8 = 20;
/// Severity of the last informational messages.
const INFORMATIONAL: u8 = 10;

pub(crate) fn is_error(message: &Message) -> bool {
    message.class > INFORMATIONAL
}

/// How a column's values are written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnForm {
    pub(crate) name: String,
    pub(crate) kind: SqlType,
    pub(crate) prefix: Prefix,
}

/// Bits of a column's description.
mod column_flag {
    pub(super) const NULLABLE: u16 = 0x01;
    pub(super) const UPDATEABLE_UNKNOWN: u16 = 0x08;
    pub(super) const IDENTITY: u16 = 0x10;
    pub(super) const COMPUTED: u16 = 0x20;
}

/// COLMETADATA.
pub(crate) fn columns(columns: &[Column], out: &mut Vec<u8>) {
    out.push(COLMETADATA);
    // A table has 1,024 columns, a result 4,096.
    out.put_u16(columns.len() as u16);
    for column in columns {
        out.put_u32(type_info::user_type(&column.kind));
        let mut flags = match (column.identity, column.computed) {
            (false, false) => column_flag::UPDATEABLE_UNKNOWN,
            (true, _) => column_flag::IDENTITY,
            (false, true) => column_flag::COMPUTED,
        };
        if column.nullable {
            flags |= column_flag::NULLABLE;
        }
        out.put_u16(flags);
        type_info::put(&column.kind, column.nullable, out);
        if matches!(column.kind, SqlType::Text | SqlType::NText | SqlType::Image) {
            // The table's name, in one part; which table it is the session does not say.
            out.push(1);
            out.put_text("");
        }
        out.put_short_text(&column.name);
    }
}

/// COLMETADATA without a description.
pub(crate) fn no_columns(out: &mut Vec<u8>) {
    out.push(COLMETADATA);
    out.put_u16(0xffff);
}

/// ROW, or NBCROW if its bitmap is shorter than the NULLs it stands for. After an error, `out` holds a
/// part of it.
pub(crate) fn row(forms: &[ColumnForm], values: &[SqlValue], out: &mut Vec<u8>) -> Result<(), (usize, Unfit)> {
    let nulls: usize = forms
        .iter()
        .zip(values)
        .filter(|(_, value)| value::is_null(value))
        .map(|(form, _)| value::null_bytes(form.prefix))
        .sum();
    let bitmap_bytes = forms.len().div_ceil(8);
    let bitmap = nulls > bitmap_bytes;
    if bitmap {
        out.push(NBCROW);
        let at = out.len();
        out.resize(at + bitmap_bytes, 0);
        for (number, value) in values.iter().enumerate() {
            if value::is_null(value) {
                out[at + number / 8] |= 1 << (number % 8);
            }
        }
    } else {
        out.push(ROW);
    }
    for (number, (form, given)) in forms.iter().zip(values).enumerate() {
        let left_out = bitmap && value::is_null(given) && !matches!(form.prefix, Prefix::Fixed(_));
        if !left_out {
            value::put(&form.kind, form.prefix, given, out).map_err(|unfit| (number, unfit))?;
        }
    }
    Ok(())
}

/// ERROR or INFO, by the message's severity.
pub(crate) fn message(message: &Message, server: &str, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    data.put_u32(message.number);
    data.put(&[message.state, message.class]);
    data.put_text(cut(&message.text, MESSAGE_TEXT));
    data.put_short_text(server);
    data.put_short_text(&message.procedure);
    data.put_u32(message.line);
    counted(if is_error(message) { ERROR } else { INFO }, &data, out);
}

/// A token with the count of its bytes; every caller's texts are short enough for it.
fn counted(token: u8, data: &[u8], out: &mut Vec<u8>) {
    out.push(token);
    out.put_u16(data.len() as u16);
    out.put(data);
}

/// ENVCHANGE: types, and old and new value in the form of each.
pub(crate) mod environment {
    use super::{Change, ENVCHANGE, Write, collation, counted};

    fn texts(kind: u8, new: &str, old: &str, out: &mut Vec<u8>) {
        let mut data = vec![kind];
        data.put_short_text(new);
        data.put_short_text(old);
        counted(ENVCHANGE, &data, out);
    }

    fn bytes(kind: u8, new: &[u8], old: &[u8], out: &mut Vec<u8>) {
        // Eight bytes at most.
        let data = [&[kind, new.len() as u8][..], new, &[old.len() as u8], old].concat();
        counted(ENVCHANGE, &data, out);
    }

    pub(crate) fn change(change: &Change, out: &mut Vec<u8>) {
        match change {
            Change::Database { from, to } => texts(1, to, from, out),
            Change::Language { from, to } => texts(2, to, from, out),
            Change::Begun(transaction) => bytes(8, &transaction.to_le_bytes(), &[], out),
            Change::Committed(transaction) => bytes(9, &[], &transaction.to_le_bytes(), out),
            Change::RolledBack(transaction) => bytes(10, &[], &transaction.to_le_bytes(), out),
        }
    }

    pub(crate) fn packet_size(new: u16, old: u16, out: &mut Vec<u8>) {
        texts(4, &new.to_string(), &old.to_string(), out);
    }

    pub(crate) fn collation(out: &mut Vec<u8>) {
        bytes(7, &collation::SERVER, &[], out);
    }

    /// The session is what it was after the login.
    pub(crate) fn reset(out: &mut Vec<u8>) {
        bytes(18, &[], &[], out);
    }
}

/// LOGINACK.
pub(crate) fn login(tds_version: u32, program: &str, version: (u8, u8, u16), out: &mut Vec<u8>) {
    // T-SQL.
    let mut data = vec![1];
    data.put(&tds_version.to_be_bytes());
    data.put_short_text(program);
    data.put(&[version.0, version.1]);
    data.put(&version.2.to_be_bytes());
    counted(LOGINACK, &data, out);
}

/// FEATUREEXTACK of features with their data.
pub(crate) fn features(features: &[(u8, &[u8])], out: &mut Vec<u8>) {
    out.push(FEATUREEXTACK);
    for (feature, data) in features {
        out.push(*feature);
        out.put_u32(data.len() as u32);
        out.put(data);
    }
    out.push(0xff);
}

/// RETURNSTATUS.
pub(crate) fn status(status: i32, out: &mut Vec<u8>) {
    out.push(RETURNSTATUS);
    out.put(&status.to_le_bytes());
}

/// RETURNVALUE of an output parameter; `place` is its place among those of the call. After an error, `out`
/// holds a part of it.
pub(crate) fn output(place: u16, name: &str, kind: &SqlType, given: &SqlValue, out: &mut Vec<u8>) -> Result<(), Unfit> {
    const OF_PROCEDURE: u8 = 0x01;
    out.push(RETURNVALUE);
    out.put_u16(place);
    out.put_short_text(name);
    out.push(OF_PROCEDURE);
    out.put_u32(type_info::user_type(kind));
    out.put_u16(column_flag::NULLABLE);
    type_info::put(kind, true, out);
    value::put(kind, type_info::prefix(kind, true), given, out)
}

/// Which of the DONE tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoneKind {
    /// A batch's statement.
    Statement = 0xfd,
    Procedure = 0xfe,
    /// A procedure's statement.
    InProcedure = 0xff,
}

/// What a DONE says of its statement's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Unknown = 0,
    Select = 0xc1,
    /// A statement that changed rows. Which one is not known here; clients only tell queries from changes.
    Update = 0xc5,
    Attention = 0xfd,
}

/// DONE, DONEPROC, DONEINPROC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) kind: DoneKind,
    pub(crate) command: Command,
    pub(crate) failed: bool,
    pub(crate) rows: Option<u64>,
}

impl Done {
    const MORE: u16 = 0x01;
    const ERROR: u16 = 0x02;
    const COUNT: u16 = 0x10;
    const ATTENTION: u16 = 0x20;

    /// The end of something that counts no rows.
    pub(crate) fn of(kind: DoneKind, failed: bool) -> Self {
        Self { kind, command: Command::Unknown, failed, rows: None }
    }

    /// `more`: another token of this kind follows in the answer.
    pub(crate) fn put(self, more: bool, out: &mut Vec<u8>) {
        let bits = [(more, Self::MORE), (self.failed, Self::ERROR), (self.rows.is_some(), Self::COUNT)];
        let status = bits.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum();
        self.put_status(status, out);
    }

    /// The acknowledgement of an attention.
    pub(crate) fn put_attention(out: &mut Vec<u8>) {
        let acknowledgement = Self { command: Command::Attention, ..Self::of(DoneKind::Statement, false) };
        acknowledgement.put_status(Self::ATTENTION, out);
    }

    fn put_status(self, status: u16, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.put_u16(status);
        out.put_u16(self.command as u16);
        out.put_u64(self.rows.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: SqlType, nullable: bool) -> Column {
        Column { name: name.into(), kind, nullable, identity: false, computed: false }
    }

    #[test]
    fn columns_are_described_with_flags_type_and_name() {
        let mut out = Vec::new();
        let mut identity = column("id", SqlType::Int, false);
        identity.identity = true;
        columns(&[identity, column("", SqlType::Image, true), column("v", SqlType::RowVersion, false)], &mut out);
        let expected = [
            &[0x81, 3, 0][..],
            &[0, 0, 0, 0, 0x10, 0, 0x38, 2, b'i', 0, b'd', 0],
            &[0, 0, 0, 0, 0x09, 0, 0x22, 255, 255, 255, 0x7f, 1, 0, 0, 0],
            &[0x50, 0, 0, 0, 0x08, 0, 0xad, 8, 0, 1, b'v', 0],
        ];
        assert_eq!(out, expected.concat());
    }

    fn forms(kinds: &[(SqlType, bool)]) -> Vec<ColumnForm> {
        kinds
            .iter()
            .map(|(kind, nullable)| ColumnForm {
                name: String::new(),
                kind: kind.clone(),
                prefix: type_info::prefix(kind, *nullable),
            })
            .collect()
    }

    #[test]
    fn a_row_has_a_bitmap_only_where_it_is_shorter() {
        let one = forms(&[(SqlType::Int, true)]);
        let mut out = Vec::new();
        row(&one, &[SqlValue::Null], &mut out).unwrap();
        assert_eq!(out, [0xd1, 0], "a NULL of one byte");
        let three = forms(&[(SqlType::Xml, true), (SqlType::TinyInt, false), (SqlType::Int, true)]);
        out.clear();
        row(&three, &[SqlValue::Null, SqlValue::Int(7), SqlValue::Null], &mut out).unwrap();
        assert_eq!(out, [0xd2, 0b101, 7], "NULLs of nine bytes");
        let nine = forms(&vec![(SqlType::Xml, true); 9]);
        out.clear();
        row(&nine, &vec![SqlValue::Null; 9], &mut out).unwrap();
        assert_eq!(out, [0xd2, 0xff, 0x01]);
    }

    #[test]
    fn a_null_is_never_left_out_of_a_column_without_null() {
        let forms = forms(&[(SqlType::Xml, true), (SqlType::Int, false)]);
        let error = row(&forms, &[SqlValue::Null, SqlValue::Null], &mut Vec::new()).unwrap_err();
        assert_eq!(error.0, 1);
    }

    #[test]
    fn an_error_says_number_state_class_text_and_places() {
        let mut out = Vec::new();
        let error = Message { number: 208, state: 1, class: 16, text: "é".into(), procedure: "p".into(), line: 3 };
        message(&error, "s", &mut out);
        let expected = [0xaa, 20, 0, 208, 0, 0, 0, 1, 16, 1, 0, 0xe9, 0, 1, b's', 0, 1, b'p', 0, 3, 0, 0, 0];
        assert_eq!(out, expected);
    }

    #[test]
    fn changes_of_transactions_hold_their_descriptor_as_new_or_old() {
        let mut out = Vec::new();
        environment::change(&Change::Begun(0x0102), &mut out);
        assert_eq!(out, [0xe3, 11, 0, 8, 8, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        environment::change(&Change::Committed(0x0102), &mut out);
        assert_eq!(out, [0xe3, 11, 0, 9, 0, 8, 2, 1, 0, 0, 0, 0, 0, 0]);
        out.clear();
        environment::change(&Change::Database { from: "a".into(), to: "b".into() }, &mut out);
        assert_eq!(out, [0xe3, 7, 0, 1, 1, b'b', 0, 1, b'a', 0]);
    }

    #[test]
    fn a_done_has_its_status_and_count() {
        let mut out = Vec::new();
        let done = Done { kind: DoneKind::InProcedure, command: Command::Select, failed: false, rows: Some(3) };
        done.put(true, &mut out);
        assert_eq!(out, [0xff, 0x11, 0, 0xc1, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        Done::of(DoneKind::Procedure, true).put(false, &mut out);
        assert_eq!(out[..3], [0xfe, 2, 0]);
        out.clear();
        Done::put_attention(&mut out);
        assert_eq!(out, [0xfd, 0x20, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
