//! What was made of the last lists of headers. Most records of a task share one list, and so their
//! changed lists are one as well, which the encoder of headers finds again.

use std::sync::Arc;

use crate::record::{Header, Headers};

#[derive(Default)]
pub(super) struct HeaderList {
    /// The list is held, so that its address cannot be another list's meanwhile.
    last: Option<(Headers, Headers)>,
}

impl HeaderList {
    /// `headers` as `change` makes them, which must not depend on anything else.
    pub(super) fn changed(&mut self, headers: &Headers, change: impl FnOnce(&mut Vec<Header>)) -> Headers {
        if let Some((known, made)) = &self.last
            && Arc::ptr_eq(known, headers)
        {
            return made.clone();
        }
        let mut list = Vec::clone(headers);
        change(&mut list);
        let made: Headers = Arc::new(list);
        self.last = Some((headers.clone(), made.clone()));
        made
    }
}

/// Longer lists kept: as many as there are operations, and some.
const KEPT: usize = 8;

/// Lists that got further headers. Their values are often the same few (an operation, a table).
#[derive(Default)]
pub struct LongerLists {
    /// The short list and the longer one, last used first.
    known: Vec<(Headers, Headers)>,
}

impl LongerLists {
    /// `headers` with `more` behind them.
    pub fn longer(&mut self, headers: &Headers, more: Vec<Header>) -> Headers {
        if more.is_empty() {
            return headers.clone();
        }
        let is_it = |(short, long): &(Headers, Headers)| Arc::ptr_eq(short, headers) && long[short.len()..] == more[..];
        let at = self.known.iter().position(is_it).unwrap_or_else(|| {
            let long = Arc::new(headers.iter().cloned().chain(more).collect());
            self.known.truncate(KEPT - 1);
            self.known.push((headers.clone(), long));
            self.known.len() - 1
        });
        self.known[..=at].rotate_right(1);
        self.known[0].1.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::record::Value;

    #[test]
    fn equal_lists_are_one_and_few_are_kept() {
        let header = |n: i32| Header { name: "n".into(), schema: None, value: Value::Int32(n) };
        let short: Headers = Arc::new(vec![header(0)]);
        let mut lists = LongerLists::default();
        let one = lists.longer(&short, vec![header(1)]);
        assert_eq!(*one, [header(0), header(1)]);
        assert!(Arc::ptr_eq(&one, &lists.longer(&short, vec![header(1)])));
        assert!(!Arc::ptr_eq(&one, &lists.longer(&short, vec![header(2)])));
        assert!(Arc::ptr_eq(&short, &lists.longer(&short, Vec::new())));
        let other: Headers = Arc::new(vec![header(5)]);
        assert_eq!(*lists.longer(&other, vec![header(1)]), [header(5), header(1)]);
        for n in 0..100 {
            lists.longer(&short, vec![header(n)]);
            assert!(lists.known.len() <= KEPT);
        }
    }
}
