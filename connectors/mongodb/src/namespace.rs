//! A collection's full name: database and collection, split at the first dot.

use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    pub db: Arc<str>,
    pub coll: Arc<str>,
}

impl Namespace {
    pub fn new(db: impl Into<Arc<str>>, coll: impl Into<Arc<str>>) -> Self {
        Self { db: db.into(), coll: coll.into() }
    }

    /// `db.coll`; the collection may contain dots, a database name cannot. `None` if a part is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let (db, coll) = text.trim().split_once('.')?;
        (!db.is_empty() && !coll.is_empty()).then(|| Self::new(db, coll))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.coll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_dot_separates() {
        assert_eq!(Namespace::parse(" shop.orders.2024 "), Some(Namespace::new("shop", "orders.2024")));
        assert_eq!(Namespace::new("shop", "a.b").to_string(), "shop.a.b");
        for bad in ["", "shop", "shop.", ".orders"] {
            assert_eq!(Namespace::parse(bad), None, "{bad}");
        }
    }
}
