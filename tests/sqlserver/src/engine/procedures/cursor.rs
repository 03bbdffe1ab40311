//! Cursors of the protocol: "sp_cursoropen", "sp_cursorfetch", "sp_cursorclose", "sp_cursorprepexec",
//! "sp_cursorexecute", "sp_cursorprepare", "sp_cursorunprepare", "sp_cursoroption".
//!
//! Every cursor is a static one: what was asked for is granted as that, as "Implicit Cursor Conversions" has it
//! for queries that a dynamic or keyset cursor cannot have. Its rows are copied into a temporary file when it is
//! opened. Changes through a cursor (`sp_cursor`) are declined: it is read-only. Options of an open one
//! (`sp_cursoroption`) have no effect.

use std::collections::BTreeMap;

use rusqlite::{Connection, params_from_iter};

use super::Given;
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::stored;
use crate::engine::run::Runner;
use crate::session::{Answers, Cancelled, Change, Column, Message};
use crate::types::SqlType;
use crate::value::SqlValue;

/// `scrollopt` and `ccopt` of a static cursor that is read-only.
const STATIC: i64 = 8;
const READ_ONLY: i64 = 1;
/// `ROWSTAT` of a row that was fetched.
const FETCHED: i64 = 1;

#[derive(Default)]
pub(crate) struct Cursors {
    last: i32,
    open: BTreeMap<i32, Cursor>,
}

struct Cursor {
    /// A temporary file of its own with the table `kept`, whose row numbers count from 1.
    rows: Connection,
    columns: Vec<Column>,
    count: i64,
    /// The row on which the last fetch began; 0: before the first row.
    first: i64,
    /// Rows of the last fetch.
    size: i64,
}

impl Cursor {
    fn new(columns: &[Column]) -> Result<Self, SqlError> {
        let rows = Connection::open("")?;
        let names: Vec<String> = (1..=columns.len()).map(|n| format!("k{n}")).collect();
        rows.execute_batch(&format!("CREATE TABLE kept ({}); BEGIN", names.join(", ")))?;
        Ok(Self { rows, columns: columns.to_vec(), count: 0, first: 0, size: 1 })
    }

    fn keep(&mut self, values: &[SqlValue]) -> Result<(), SqlError> {
        let places: Vec<String> = (1..=values.len()).map(|n| format!("?{n}")).collect();
        let values = values.iter().zip(&self.columns).map(|(v, c)| stored::encode(v, &c.kind));
        let mut insert = self.rows.prepare_cached(&format!("INSERT INTO kept VALUES ({})", places.join(", ")))?;
        insert.execute(params_from_iter(values))?;
        self.count += 1;
        Ok(())
    }

    /// With the column that says what became of a row.
    fn described(&self) -> Vec<Column> {
        let status =
            Column { name: "ROWSTAT".into(), kind: SqlType::Int, nullable: false, identity: false, computed: false };
        [&self.columns[..], &[status]].concat()
    }

    /// Where a fetch begins, by its type ("sp_cursorfetch"). `None`: no such type.
    fn start(&self, fetch: i64, row: i64, most: i64) -> Option<i64> {
        Some(match fetch & 0xff {
            0x01 => 1,
            0x02 => self.first + self.size,
            // Not before the first row, unless the cursor is there already.
            0x04 if self.first > 1 => (self.first - most).max(1),
            0x04 => 0,
            0x08 => (self.count - most + 1).max(1),
            0x10 if row < 0 => self.count + row + 1,
            0x10 => row,
            0x20 => self.first + row,
            0x80 => self.first,
            _ => return None,
        })
    }
}

impl Runner {
    /// `None`: no procedure of cursors.
    pub(super) fn cursor_procedure(
        &mut self,
        name: &str,
        given: &mut Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<Option<i32>> {
        match name {
            "sp_cursoropen" => {
                let text = given.text("stmt", 1).unwrap_or_default();
                let declared = given.text("paramdef", 5).unwrap_or_default();
                self.open_cursor(&text, &declared, given, [0, 2, 3, 4], 6, depth, answers)?;
            }
            "sp_cursorprepexec" => {
                let declared = given.text("params", 2).unwrap_or_default();
                let text = given.text("statement", 3).unwrap_or_default();
                self.keep(given, declared.clone(), text.clone());
                self.open_cursor(&text, &declared, given, [1, 4, 5, 6], 7, depth, answers)?;
            }
            "sp_cursorexecute" => {
                let (declared, text) = self.kept(given.handle("prepared_handle", 0))?;
                self.open_cursor(&text, &declared, given, [1, 2, 3, 4], 5, depth, answers)?;
            }
            "sp_cursorprepare" => {
                let declared = given.text("params", 1).unwrap_or_default();
                let text = given.text("stmt", 2).unwrap_or_default();
                self.keep(given, declared, text);
            }
            "sp_cursorunprepare" => self.forget_prepared(given.handle("handle", 0)),
            "sp_cursorfetch" => self.fetch(given.handle("cursor", 0), given, answers)?,
            "sp_cursoroption" => {
                self.cursor(name, given.handle("cursor", 0))?;
            }
            "sp_cursorclose" => match given.int("cursor", 0) {
                // "sp_cursorclose": -1 closes all.
                Some(-1) => self.cursors.open.clear(),
                _ => {
                    let handle = given.handle("cursor", 0);
                    self.cursor(name, handle)?;
                    self.cursors.open.remove(&handle);
                }
            },
            "sp_cursor" => {
                return Err(SqlError::new(16929, "The cursor is READ ONLY.").into());
            }
            _ => return Ok(None),
        }
        Ok(Some(0))
    }

    fn cursor(&mut self, procedure: &str, handle: i32) -> Result<&mut Cursor, SqlError> {
        self.cursors.open.get_mut(&handle).ok_or_else(|| invalid(procedure, "cursor"))
    }

    /// `outputs`: places of the cursor, of its two options and of the number of rows; `first`: of the first
    /// parameter of the text. A text without a result runs as it is, and there is no cursor.
    #[allow(clippy::too_many_arguments)]
    fn open_cursor(
        &mut self,
        text: &str,
        declared: &str,
        given: &mut Given,
        outputs: [usize; 4],
        first: usize,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let mut keeping = Keeping { outer: answers, cursor: None, failed: None };
        let result = self.run_text(text, declared, given, first, depth, &mut keeping);
        let Keeping { cursor, failed, .. } = keeping;
        if let Some(error) = failed {
            return Err(error.into());
        }
        result?;
        let Some(cursor) = cursor else { return Ok(()) };
        cursor.rows.execute_batch("COMMIT").map_err(SqlError::from)?;
        answers.columns(&cursor.described())?;
        answers.done(None)?;
        let count = cursor.count;
        self.cursors.last += 1;
        self.cursors.open.insert(self.cursors.last, cursor);
        let values = [self.cursors.last.into(), STATIC, READ_ONLY, count];
        for (place, value) in outputs.into_iter().zip(values) {
            given.put(place, value);
        }
        Ok(())
    }

    fn fetch(&mut self, handle: i32, given: &mut Given, answers: &mut dyn Answers) -> Outcome<()> {
        const PROCEDURE: &str = "sp_cursorfetch";
        const INFO: i64 = 0x100;
        let kind = given.int("fetchtype", 1).unwrap_or(2);
        let row = given.int("rownum", 2).unwrap_or(0);
        let most = given.int("nrows", 3).unwrap_or(20);
        let cursor = self.cursor(PROCEDURE, handle)?;
        if kind & INFO != 0 {
            let position = cursor.first.min(cursor.count);
            for (place, value) in [(2, position), (3, cursor.count)] {
                given.put(place, value);
            }
            return Ok(());
        }
        if most < 0 {
            return Err(invalid(PROCEDURE, "nrows").into());
        }
        let start = cursor.start(kind, row, most).ok_or_else(|| invalid(PROCEDURE, "fetchtype"))?;
        answers.columns(&cursor.described())?;
        let size = if start < 1 { 0 } else { most.min(cursor.count - start + 1).max(0) };
        (cursor.first, cursor.size) = match start {
            ..1 => (0, 1),
            _ if size == 0 && most > 0 => (cursor.count + 1, 0),
            _ => (start, size),
        };
        let mut statement =
            cursor.rows.prepare_cached("SELECT * FROM kept WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid")?;
        let mut rows = statement.query([start, start + size - 1])?;
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(cursor.columns.len() + 1);
            for (n, column) in cursor.columns.iter().enumerate() {
                values.push(stored::decode(row.get_ref(n)?, &column.kind));
            }
            values.push(SqlValue::Int(FETCHED));
            answers.row(&values)?;
        }
        drop(rows);
        drop(statement);
        answers.done(u64::try_from(size).ok())?;
        Ok(())
    }
}

fn invalid(procedure: &str, parameter: &str) -> SqlError {
    SqlError::new(16902, format!("{procedure}: The value of the parameter '{parameter}' is invalid."))
}

/// Keeps the rows of the only result in a cursor; everything else goes on to the client.
struct Keeping<'a> {
    outer: &'a mut dyn Answers,
    cursor: Option<Cursor>,
    failed: Option<SqlError>,
}

impl Keeping<'_> {
    fn fail(&mut self, error: SqlError) -> Cancelled {
        self.failed.get_or_insert(error);
        Cancelled
    }
}

impl Answers for Keeping<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<(), Cancelled> {
        if self.cursor.is_some() {
            let text = "A server cursor is not allowed on a remote stored procedure or stored procedure with more than one SELECT statement. Use a default result set or client cursor.";
            return Err(self.fail(SqlError::new(16937, text)));
        }
        match Cursor::new(columns) {
            Ok(cursor) => self.cursor = Some(cursor),
            Err(error) => return Err(self.fail(error)),
        }
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> Result<(), Cancelled> {
        match self.cursor.as_mut().map_or(Ok(()), |c| c.keep(values)) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn done(&mut self, rows: Option<u64>) -> Result<(), Cancelled> {
        if self.cursor.is_some() { Ok(()) } else { self.outer.done(rows) }
    }

    fn message(&mut self, message: &Message) -> Result<(), Cancelled> {
        self.outer.message(message)
    }

    fn change(&mut self, change: &Change) -> Result<(), Cancelled> {
        self.outer.change(change)
    }

    fn output(&mut self, name: &str, kind: &SqlType, value: &SqlValue) -> Result<(), Cancelled> {
        self.outer.output(name, kind, value)
    }

    fn status(&mut self, _: i32) -> Result<(), Cancelled> {
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.failed.is_some() || self.outer.cancelled()
    }
}
