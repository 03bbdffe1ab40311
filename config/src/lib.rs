//! Configuration: option tables as data, and everything that is derived from them.
//!
//! Files in the order in which a configuration passes through them: `parse` reads Java properties
//! and JSON into `properties`; `provider` resolves `${...}` references; `alias` renames older keys;
//! `validate` checks against the tables of `option` (one `value` at a time, with the list syntax of
//! `rule`) and yields `settings`; `reply` shows the outcome over REST; `node`, `connector` and
//! `debezium` hold the tables that nodes and connectors share; `reference` prints tables as
//! documentation; `mask` hides credentials in what is logged, `sanitize` what a user wants hidden.
//!
//! It does not: connect to anything, know a connector, or log a value.

pub mod alias;
pub mod connector;
pub mod debezium;
pub mod mask;
pub mod node;
pub mod option;
pub mod parse;
pub mod properties;
pub mod provider;
pub mod reference;
pub mod reply;
pub mod rule;
pub mod sanitize;
pub mod secret;
pub mod settings;
pub mod validate;
pub mod value;

pub use node::{WorkerConfig, WorkerErrors};
pub use option::{CrossCheck, Importance, OptionDef, OptionKind, OptionTable, Rule, Standing, Width, Wording};
pub use properties::Properties;
pub use provider::{Providers, References, Resolution};
pub use reply::{config_keys, validate_reply};
pub use rule::RegexList;
pub use secret::{HIDDEN, Secret};
pub use settings::{Parsed, Settings};
pub use validate::{Naming, ValidatedOption, Validation};
