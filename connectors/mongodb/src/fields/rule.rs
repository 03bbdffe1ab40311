//! One entry of the options without its namespace.

/// A field and what is done with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Names from the document down to the field; at least one. Arrays on the way have no part in it.
    pub(super) path: Box<[Box<[u8]>]>,
    pub(super) action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Exclude,
    /// The new name of the last part.
    Rename(Box<[u8]>),
}
