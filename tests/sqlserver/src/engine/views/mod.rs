//! System views. Their rows are made when a statement is bound, and put into a temporary table for it.
//!
//! Columns follow the pages of the views; those that nobody reads are left out.

mod capture;
mod catalog;
mod server;

use std::sync::Arc;

use super::bind::Binder;
use super::catalogue::Database;
use super::fault::SqlError;
use super::sql::statement::Name;
use crate::types::SqlType;
use crate::value::SqlValue;

/// A view with its rows, for one statement.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// The temporary table's name.
    pub(crate) kept: String,
    pub(crate) columns: Vec<ViewColumn>,
    pub(crate) rows: Vec<Vec<SqlValue>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ViewColumn {
    pub(crate) name: &'static str,
    pub(crate) kind: SqlType,
    pub(crate) nullable: bool,
}

fn view(columns: &[(&'static str, SqlType)], rows: Vec<Vec<SqlValue>>) -> Rows {
    let columns = columns.iter().map(|(name, kind)| ViewColumn { name, kind: kind.clone(), nullable: true }).collect();
    Rows { kept: String::new(), columns, rows }
}

fn text(text: &str) -> SqlValue {
    SqlValue::Text(text.to_owned())
}

fn int(n: impl Into<i64>) -> SqlValue {
    SqlValue::Int(n.into())
}

fn bit(b: bool) -> SqlValue {
    SqlValue::Bit(b)
}

/// `None`: there is no such view. Error 300: the login may not see the server's state.
pub(crate) fn find(binder: &Binder<'_>, database: &Arc<Database>, name: &Name) -> Result<Option<Rows>, SqlError> {
    let schema = name.schema.as_deref().unwrap_or("").to_lowercase();
    let object = name.object.to_lowercase();
    Ok(match schema.as_str() {
        "sys" if object.starts_with("dm_") => {
            let found = server::find(binder, database, &object);
            let user = &binder.session.login.user;
            if found.is_some()
                && object == "dm_server_services"
                && !binder.world.may_on_server(user, "VIEW SERVER STATE")
            {
                let text = "VIEW SERVER STATE permission was denied on object 'server', database 'master'.";
                return Err(SqlError::new(300, text).class(14));
            }
            found
        }
        "sys" => catalog::find(&binder.world, database, &object),
        "information_schema" => catalog::information_schema(database, &object),
        "cdc" => {
            let found = capture::find(database, &object);
            let user = &binder.session.login.user;
            let schema = super::catalogue::Table::named(&schema, &object);
            if found.is_some() && !binder.world.may(database, user, "SELECT", Some(&schema)) {
                return Err(super::bind::denied("SELECT", &name.object, &database.name, "cdc"));
            }
            found
        }
        _ => None,
    })
}
