//! T-SQL's functions and operators, as Rust functions over values.
//!
//! SQLite knows two functions, [`CALL`] and [`CALL_AGAIN`], whose first argument is the number of a
//! [`Signature`]: which function it is, the types of its arguments, the type of its result. So there is one
//! way from a T-SQL expression to code, and values cross SQLite in the forms of `kinds::stored` only.

pub(crate) mod aggregates;
mod cdc;
mod dates;
mod metadata;
pub(crate) mod operators;
pub(crate) mod packed;
mod strings;
mod table;
mod variant;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;

use super::fault::SqlError;
use super::kinds::stored;
use super::kinds::text;
use super::session::state::SessionState;
use super::shared::Engine;
use crate::types::SqlType;
use crate::value::SqlValue;

pub(crate) use metadata::split_name;
pub(crate) use table::{Builtin, Want, builtin};

/// For functions whose result depends on their arguments alone.
pub(crate) const CALL: &str = "ts_call";
/// For the others; SQLite calls it for every row.
pub(crate) const CALL_AGAIN: &str = "ts_call_again";

pub(crate) type Eval = fn(&Call<'_>, &[SqlValue]) -> Result<SqlValue, SqlError>;

/// Which function over which types.
#[derive(Clone)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) eval: Eval,
    /// NULL in, NULL out.
    pub(crate) strict: bool,
    pub(crate) arguments: Vec<SqlType>,
    pub(crate) result: SqlType,
    /// Names that errors print, and other constants of the place of the call.
    pub(crate) notes: Vec<String>,
}

/// What a function sees besides its arguments.
pub(crate) struct Call<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) session: &'a SessionState,
}

impl Call<'_> {
    pub(crate) fn kind(&self, n: usize) -> &SqlType {
        self.signature.arguments.get(n).unwrap_or(&SqlType::Int)
    }

    pub(crate) fn result(&self) -> &SqlType {
        &self.signature.result
    }

    pub(crate) fn note(&self, n: usize) -> &str {
        self.signature.notes.get(n).map_or("", |n| n)
    }
}

type Key = (&'static str, Vec<SqlType>, SqlType, Vec<String>);

/// The signatures in use, by number.
#[derive(Default)]
pub(crate) struct Signatures {
    all: RwLock<Numbered>,
}

#[derive(Default)]
struct Numbered {
    numbers: HashMap<Key, usize>,
    list: Vec<Arc<Signature>>,
}

impl Signatures {
    pub(crate) fn number(&self, signature: Signature) -> usize {
        let key = (signature.name, signature.arguments.clone(), signature.result.clone(), signature.notes.clone());
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let Numbered { numbers, list } = &mut *all;
        *numbers.entry(key).or_insert_with(|| {
            list.push(Arc::new(signature));
            list.len() - 1
        })
    }

    fn get(&self, number: i64) -> Option<Arc<Signature>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.list.get(usize::try_from(number).ok()?).cloned()
    }
}

/// Makes functions and collations known to a session's connection.
pub(crate) fn register(db: &Connection, engine: &Arc<Engine>, session: &Arc<SessionState>) -> rusqlite::Result<()> {
    for (name, flags) in [
        (CALL, FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC),
        (CALL_AGAIN, FunctionFlags::SQLITE_UTF8),
    ] {
        let (engine, session) = (engine.clone(), session.clone());
        db.create_scalar_function(name, -1, flags, move |context| {
            let signature =
                engine.signatures.get(context.get(0)?).ok_or_else(|| SqlError::new(8630, "unknown signature"))?;
            let mut arguments = Vec::with_capacity(context.len() - 1);
            for (n, kind) in signature.arguments.iter().enumerate() {
                let value = stored::decode(context.get_raw(n + 1), kind);
                if signature.strict && value == SqlValue::Null {
                    return Ok(Value::Null);
                }
                arguments.push(value);
            }
            let call = Call { signature: &signature, engine: &engine, session: &session };
            let result = (signature.eval)(&call, &arguments)?;
            Ok(stored::encode(&result, &signature.result))
        })?;
    }
    db.create_collation(text::CI, text::compare_ci)?;
    db.create_collation(text::CS, text::compare_cs)?;
    db.create_collation(text::BIN, text::compare_bin)?;
    packed::register(db)?;
    aggregates::register(db)
}
