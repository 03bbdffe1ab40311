//! What was made of the last list of headers. Most records of a task share one list, and so their
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
