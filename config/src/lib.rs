//! Configuration: option tables as data, and everything that is derived from them.
//!
//! Files in the order in which a configuration passes through them: `parse` reads Java properties
//! and JSON into `properties`; `provider` resolves `${...}` references; `alias` renames older keys;
//! `validate` checks against the tables of `option` and yields `settings`; `node` and `connector`
//! hold the tables that every node and every connector shares; `reference` prints the tables as
//! documentation.
//!
//! It does not: connect to anything, know a connector, or log a value.

pub mod option;
pub mod properties;
pub mod secret;
pub mod settings;
pub mod validate;

pub use option::{CrossCheck, Importance, OptionDef, OptionKind, OptionTable, Rule, Standing, Width};
pub use properties::Properties;
pub use secret::Secret;
pub use settings::{Parsed, Settings};
pub use validate::{ValidatedOption, Validation};
