//! Sessions without a wire, and what they answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use thalweg_sqlserver_emulator::engine::{Capturing, Emulator, Setup};
use thalweg_sqlserver_emulator::session::{
    Answers, Cancelled, Change, Column, Login, Message, Parameter, Request, Server, Session,
};
use thalweg_sqlserver_emulator::types::SqlType;
use thalweg_sqlserver_emulator::value::SqlValue;

/// Everything that a request was answered.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) columns: Vec<Vec<Column>>,
    /// Of all results, one after the other.
    pub(crate) rows: Vec<Vec<SqlValue>>,
    pub(crate) counts: Vec<Option<u64>>,
    pub(crate) messages: Vec<Message>,
    pub(crate) changes: Vec<Change>,
    pub(crate) outputs: Vec<(String, SqlValue)>,
}

impl Answers for Heard {
    fn columns(&mut self, columns: &[Column]) -> Result<(), Cancelled> {
        self.columns.push(columns.to_vec());
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> Result<(), Cancelled> {
        self.rows.push(values.to_vec());
        Ok(())
    }

    fn done(&mut self, rows: Option<u64>) -> Result<(), Cancelled> {
        self.counts.push(rows);
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<(), Cancelled> {
        self.messages.push(message.clone());
        Ok(())
    }

    fn change(&mut self, change: &Change) -> Result<(), Cancelled> {
        self.changes.push(change.clone());
        Ok(())
    }

    fn output(&mut self, name: &str, _: &SqlType, value: &SqlValue) -> Result<(), Cancelled> {
        self.outputs.push((name.to_owned(), value.clone()));
        Ok(())
    }
}

impl Heard {
    pub(crate) fn errors(&self) -> Vec<u32> {
        self.messages.iter().filter(|m| m.class > 10).map(|m| m.number).collect()
    }
}

pub(crate) struct Client(pub(crate) Box<dyn Session>);

impl Client {
    pub(crate) fn to(server: &Emulator, database: &str) -> Self {
        Self::of(server, "sa", "Password!1", database)
    }

    pub(crate) fn of(server: &Emulator, user: &str, password: &str, database: &str) -> Self {
        let login =
            Login { user: user.into(), password: password.into(), database: database.into(), ..Login::default() };
        let Ok((session, _)) = server.login(&login) else { panic!("{user} is refused") };
        Self(session)
    }

    /// Whatever comes.
    pub(crate) fn ask(&mut self, text: &str) -> Heard {
        let mut heard = Heard::default();
        let _ = self.0.run(Request::Batch(text.into()), &mut heard);
        heard
    }

    /// Rows; an error fails the test.
    pub(crate) fn rows(&mut self, text: &str) -> Vec<Vec<SqlValue>> {
        let heard = self.ask(text);
        assert!(heard.errors().is_empty(), "{text}: {:?}", heard.messages);
        heard.rows
    }

    /// Number of the first error.
    pub(crate) fn error(&mut self, text: &str) -> u32 {
        let heard = self.ask(text);
        *heard.errors().first().unwrap_or_else(|| panic!("{text}: no error, {heard:?}"))
    }

    /// `sp_executesql` as clients send it.
    pub(crate) fn with(&mut self, text: &str, declared: &str, parameters: &[(&str, SqlType, SqlValue)]) -> Heard {
        let parameter =
            |name: &str, kind: SqlType, value: SqlValue| Parameter { name: name.into(), kind, value, output: false };
        let long = || SqlType::NVarChar(thalweg_sqlserver_emulator::types::Length::Max);
        let mut all = vec![
            parameter("stmt", long(), SqlValue::Text(text.into())),
            parameter("params", long(), SqlValue::Text(declared.into())),
        ];
        all.extend(parameters.iter().map(|(name, kind, value)| parameter(name, kind.clone(), value.clone())));
        let mut heard = Heard::default();
        let _ = self.0.run(Request::Procedure { name: "sp_executesql".into(), parameters: all }, &mut heard);
        heard
    }
}

/// A server where the test captures, with the database `shop`.
pub(crate) fn shop() -> Emulator {
    let server = Emulator::start(&Setup { capturing: Capturing::Test, ..Setup::default() }).unwrap();
    Client::to(&server, "").rows("CREATE DATABASE shop");
    server
}

pub(crate) fn int(n: i64) -> SqlValue {
    SqlValue::Int(n)
}

pub(crate) fn text(text: &str) -> SqlValue {
    SqlValue::Text(text.into())
}
