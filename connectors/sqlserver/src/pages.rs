//! The changes of one capture instance in a window, page by page.
//!
//! Of each table at most one page is in memory. A page ends after so many rows or bytes, whichever comes first;
//! the rest of its answer then stays on the server. Rows that nothing tells apart are on one page, because the
//! next one begins behind all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::change::{self, ChangeRow};
use crate::errors::{Class, Fault};
use crate::instance::CaptureInstance;
use crate::link::{Parameter, SqlLink};
use crate::lsn::Lsn;
use crate::statement::{Begin, ChangeQuery};

/// What a page may take, besides its last row.
const PAGE_BYTES: usize = 16 << 20;

/// The order of a row among those of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(crate) fn new(instance: Arc<CaptureInstance>, query: ChangeQuery, rows: usize, (from, to): (Lsn, Lsn)) -> Self {
        let from = from.max(instance.start);
        Self { instance, query, rows, from, to, page: VecDeque::new(), last: None, ended: from > to }
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
        let (mut page, mut last, mut count, mut bytes) = (VecDeque::new(), None, 0, 0);
        let mut is_cut = false;
        let mut answer = link.ask(&statement, &parameters).await?;
        while let Some(row) = answer.next().await? {
            count += 1;
            let Some(row) = change::row(&instance, has_command, row)? else {
                tracing::error!(table = %instance.table, "Skipping change as its LSN is NULL which is not expected");
                continue;
            };
            let ChangeRow { commit, change, command, .. } = row;
            let key = Some(Key { commit, change, command, code: row.code as i32 });
            if bytes >= PAGE_BYTES && key != last {
                is_cut = true;
                break;
            }
            last = key;
            bytes += row.bytes;
            page.push_back(row);
        }
        drop(answer);
        // Rows without a place do not move it: a page of nothing else would come again for ever.
        self.ended = (count < most && !is_cut) || last.is_none();
        if is_cut {
            // What is left of an answer costs the connection: the pages behind this one end by themselves.
            self.rows = page.len();
        }
        self.page = page;
        self.last = last.or(self.last);
        Ok(())
    }

    fn question(&self) -> (String, Vec<Parameter>) {
        let Some(last) = self.last else {
            return (self.query.page(self.rows, Begin::Commit), vec![self.to.into(), self.from.into()]);
        };
        let begin = Begin::Behind { has_command: last.command.is_some() };
        let mut parameters: Vec<Parameter> =
            vec![self.to.into(), last.commit.into(), last.change.into(), last.code.into()];
        parameters.extend(last.command.map(Parameter::Int));
        (self.query.page(self.rows, begin), parameters)
    }
}
