//! The changes of one capture instance in a window, page by page.
//!
//! Of each table at most one page is in memory. A page ends after so many rows or bytes, whichever comes first;
//! the rest of its answer then stays on the server.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::change::{self, ChangeRow};
use crate::errors::{Class, Fault};
use crate::instance::CaptureInstance;
use crate::link::{Parameter, SqlLink};
use crate::lsn::Lsn;
use crate::options::QueryMode;
use crate::statement::{Begin, ChangeQuery};

/// What a page may take, besides its last row.
const PAGE_BYTES: usize = 16 << 20;

/// The order of a row among those of its table.
#[derive(Debug, Clone, Copy)]
struct Key {
    commit: Lsn,
    change: Lsn,
    command: Option<i32>,
    code: i32,
}

/// Reads one capture instance up to the end of a window.
pub(crate) struct Pages {
    pub(crate) instance: Arc<CaptureInstance>,
    query: ChangeQuery,
    mode: QueryMode,
    rows: usize,
    from: Lsn,
    to: Lsn,
    page: VecDeque<ChangeRow>,
    /// The last row that was fetched.
    last: Option<Key>,
    /// Everything is fetched.
    ended: bool,
}

impl Pages {
    /// From a commit on and up to another, both included.
    pub(crate) fn new(
        instance: Arc<CaptureInstance>,
        query: ChangeQuery,
        mode: QueryMode,
        rows: usize,
        (from, to): (Lsn, Lsn),
    ) -> Self {
        let from = from.max(instance.start);
        Self { instance, query, mode, rows, from, to, page: VecDeque::new(), last: None, ended: from > to }
    }

    /// The next row; `None`: there is none.
    ///
    /// # Errors
    /// Those of the link. What was not handed out is fetched again then.
    pub(crate) async fn next(&mut self, link: &mut SqlLink) -> Result<Option<ChangeRow>, Fault> {
        while self.page.is_empty() && !self.ended {
            match self.fetch(link).await {
                // A connection that is lost half-way is replaced, as for any other statement.
                Err(fault) if fault.class() == Class::Connect => self.fetch(link).await?,
                result => result?,
            }
        }
        Ok(self.page.pop_front())
    }

    async fn fetch(&mut self, link: &mut SqlLink) -> Result<(), Fault> {
        let (statement, parameters) = self.question();
        let (instance, has_command, most) = (self.instance.clone(), self.query.has_commands(), self.rows);
        // A page through a function has all rows of its last place, so its bytes must not cut it there.
        let limit = if self.mode == QueryMode::Function { usize::MAX } else { PAGE_BYTES };
        let (mut page, mut last, mut count, mut bytes) = (VecDeque::new(), None, 0, 0);
        link.page(&statement, &parameters, |row| {
            count += 1;
            match change::row(&instance, has_command, row)? {
                Some(row) => {
                    let ChangeRow { commit, change, command, .. } = row;
                    last = Some(Key { commit, change, command, code: row.code as i32 });
                    bytes += row.bytes;
                    page.push_back(row);
                }
                None => {
                    tracing::error!(table = %instance.table, "Skipping change as its LSN is NULL which is not expected");
                }
            }
            Ok(bytes < limit)
        })
        .await?;
        self.ended = count < most && bytes < limit;
        // Rows without a place do not move it: a page of nothing else would come again for ever.
        self.ended |= last.is_none();
        self.page = page;
        self.last = last.or(self.last);
        Ok(())
    }

    fn question(&self) -> (String, Vec<Parameter>) {
        let Some(last) = self.last else {
            return (self.query.page(self.rows, Begin::Commit), vec![self.to.into(), self.from.into()]);
        };
        let command = last.command.filter(|_| self.query.has_commands());
        let begin = Begin::Behind { has_command: command.is_some() };
        let mut parameters: Vec<Parameter> =
            vec![self.to.into(), last.commit.into(), last.change.into(), last.code.into()];
        parameters.extend(command.map(Parameter::Int));
        (self.query.page(self.rows, begin), parameters)
    }
}
