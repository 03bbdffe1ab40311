//! "Metadata functions", "Security functions", "System functions" and the `@@` functions.

use super::Call;
use crate::engine::catalogue::Database;
use crate::engine::fault::SqlError;
use crate::engine::kinds::kind::SYSTEM_TYPES;
use crate::engine::kinds::text::same_name;
use crate::engine::sql::statement::Name;
use crate::types::SqlType;
use crate::value::SqlValue;

use std::sync::Arc;
use std::sync::atomic::Ordering;

fn text(arguments: &[SqlValue], n: usize) -> Option<&str> {
    match arguments.get(n) {
        Some(SqlValue::Text(text)) => Some(text),
        _ => None,
    }
}

fn int(arguments: &[SqlValue], n: usize) -> Option<i32> {
    match arguments.get(n) {
        Some(SqlValue::Int(n)) => i32::try_from(*n).ok(),
        _ => None,
    }
}

fn some_text(text: Option<impl Into<String>>) -> SqlValue {
    text.map_or(SqlValue::Null, |t| SqlValue::Text(t.into()))
}

fn some_int(n: Option<impl Into<i64>>) -> SqlValue {
    n.map_or(SqlValue::Null, |n| SqlValue::Int(n.into()))
}

fn current(call: &Call<'_>) -> Option<Arc<Database>> {
    call.engine.world().database_by_id(call.session.database())
}

/// The database of the argument's id, or the current one.
fn database(call: &Call<'_>, arguments: &[SqlValue], n: usize) -> Option<Arc<Database>> {
    match arguments.get(n) {
        Some(_) => call.engine.world().database_by_id(int(arguments, n)?),
        None => current(call),
    }
}

pub(crate) fn db_id(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(some_int(match arguments.first() {
        None => Some(call.session.database()),
        Some(_) => text(arguments, 0).and_then(|n| call.engine.world().database(n)).map(|d| d.id),
    }))
}

pub(crate) fn db_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(some_text(database(call, arguments, 0).map(|d| d.name.clone())))
}

/// A name with dots, brackets and quotes into its parts.
pub(crate) fn split_name(text: &str) -> Option<Name> {
    let mut parts = vec![String::new()];
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '.' => parts.push(String::new()),
            '[' | '"' => {
                let close = if c == '[' { ']' } else { '"' };
                let part = parts.last_mut()?;
                loop {
                    match chars.next()? {
                        c if c == close && chars.peek() == Some(&close) => {
                            chars.next();
                            part.push(close);
                        }
                        c if c == close => break,
                        c => part.push(c),
                    }
                }
            }
            c => parts.last_mut()?.push(c),
        }
    }
    let some = |part: &String| (!part.is_empty()).then(|| part.clone());
    match &parts[..] {
        [object] => Some(Name { database: None, schema: None, object: object.clone() }),
        [schema, object] => Some(Name { database: None, schema: some(schema), object: object.clone() }),
        [database, schema, object] => {
            Some(Name { database: some(database), schema: some(schema), object: object.clone() })
        }
        _ => None,
    }
}

pub(crate) fn object_id(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let Some(name) = text(arguments, 0).and_then(split_name) else { return Ok(SqlValue::Null) };
    let kind = text(arguments, 1).map(|k| k.trim().to_uppercase());
    let wanted = |kinds: &[&str]| kind.as_deref().is_none_or(|k| kinds.contains(&k));
    if name.object.starts_with('#') && wanted(&["U"]) {
        return Ok(some_int(call.session.temporary(&name.object).map(|t| t.id)));
    }
    let world = call.engine.world();
    let database = match &name.database {
        Some(database) => world.database(database),
        None => world.database_by_id(call.session.database()),
    };
    let Some(database) = database else { return Ok(SqlValue::Null) };
    let schema = name.schema();
    let table = database.table(schema, &name.object).filter(|_| wanted(&["U"])).map(|t| t.id);
    let view = || database.view(schema, &name.object).filter(|_| wanted(&["V"])).map(|v| v.id);
    let constraint = || {
        database.tables.values().filter(|t| same_name(&t.schema, schema)).find_map(|t| {
            let key =
                t.indexes.iter().find(|i| i.constraint != 0 && same_name(&i.name, &name.object)).map(|i| i.constraint);
            let default = || {
                t.columns
                    .iter()
                    .filter_map(|c| c.default.as_ref())
                    .find(|d| same_name(&d.name, &name.object))
                    .map(|d| d.id)
            };
            let check = || t.checks.iter().find(|c| same_name(&c.name, &name.object)).map(|c| c.id);
            let foreign = || t.foreign_keys.iter().find(|f| same_name(&f.name, &name.object)).map(|f| f.id);
            key.or_else(default).or_else(check).or_else(foreign)
        })
    };
    Ok(some_int(table.or_else(view).or_else(constraint)))
}

/// Schema and name.
fn object(database: &Database, id: i32) -> Option<(String, String)> {
    database
        .tables
        .get(&id)
        .map(|t| (t.schema.clone(), t.name.clone()))
        .or_else(|| database.views.iter().find(|v| v.id == id).map(|v| (v.schema.clone(), v.name.clone())))
}

pub(crate) fn object_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(some_text(database(call, arguments, 1).zip(int(arguments, 0)).and_then(|(d, id)| object(&d, id)).map(|o| o.1)))
}

pub(crate) fn object_schema_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(some_text(database(call, arguments, 1).zip(int(arguments, 0)).and_then(|(d, id)| object(&d, id)).map(|o| o.0)))
}

/// Of views; definitions of constraints are in their catalog views.
pub(crate) fn object_definition(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let id = int(arguments, 0);
    let view = current(call).and_then(|d| d.views.iter().find(|v| Some(v.id) == id).map(|v| v.text.clone()));
    Ok(some_text(view))
}

pub(crate) fn schema_id(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let name = text(arguments, 0).unwrap_or("dbo");
    Ok(some_int(current(call).and_then(|d| d.schema(name).map(|s| s.id))))
}

pub(crate) fn schema_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let id = if arguments.is_empty() { Some(1) } else { int(arguments, 0) };
    Ok(some_text(current(call).and_then(|d| d.schemas.iter().find(|s| Some(s.id) == id).map(|s| s.name.clone()))))
}

pub(crate) fn type_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let Some(id) = int(arguments, 0) else { return Ok(SqlValue::Null) };
    let system = SYSTEM_TYPES.iter().find(|t| t.2 == id).map(|t| t.0.to_owned());
    Ok(some_text(system.or_else(|| current(call)?.types.iter().find(|t| t.id == id).map(|t| t.name.clone()))))
}

pub(crate) fn type_id(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let Some(name) = text(arguments, 0).and_then(split_name) else { return Ok(SqlValue::Null) };
    let system = SYSTEM_TYPES.iter().find(|t| same_name(t.0, &name.object)).map(|t| t.2);
    Ok(some_int(system.or_else(|| current(call)?.alias_type(name.schema.as_deref(), &name.object).map(|t| t.id))))
}

pub(crate) fn col_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let name = (|| {
        let database = current(call)?;
        let table = database.tables.get(&int(arguments, 0)?)?;
        table.column_by_id(int(arguments, 1)?).map(|c| c.name.clone())
    })();
    Ok(some_text(name))
}

pub(crate) fn columnproperty(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let value = (|| {
        let database = current(call)?;
        let table = database.tables.get(&int(arguments, 0)?)?;
        let column = table.column(text(arguments, 1)?)?;
        Some(match text(arguments, 2)?.to_lowercase().as_str() {
            "isidentity" => column.identity.is_some().into(),
            "iscomputed" => column.computed.is_some().into(),
            "allowsnull" => column.nullable.into(),
            "columnid" | "ordinal" => column.id,
            "isrowguidcol" => column.rowguid.into(),
            "issparse" => column.sparse.into(),
            "ishidden" => column.hidden.into(),
            "generatedalwaystype" => column.generated.into(),
            "precision" => match column.kind.length() {
                Some(n) => n.into(),
                None if column.kind.is_max() => -1,
                None => column.kind.sizes().1.into(),
            },
            "scale" => column.kind.sizes().2.into(),
            _ => return None,
        })
    })();
    Ok(some_int(value))
}

pub(crate) fn objectproperty(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let value = (|| {
        let database = current(call)?;
        let id = int(arguments, 0)?;
        let table = database.tables.get(&id);
        let is_view = database.views.iter().any(|v| v.id == id);
        if table.is_none() && !is_view {
            return None;
        }
        Some(match text(arguments, 1)?.to_lowercase().as_str() {
            "istable" => table.is_some(),
            "isusertable" => table.is_some_and(|t| !t.shipped),
            "isview" => is_view,
            "ismsshipped" => table.is_some_and(|t| t.shipped),
            "tablehasprimarykey" => table.is_some_and(|t| t.primary_key().is_some()),
            "tablehasidentity" => table.is_some_and(|t| t.columns.iter().any(|c| c.identity.is_some())),
            "tablehasclustindex" => table.is_some_and(|t| t.clustered().is_some()),
            _ => return None,
        })
    })();
    Ok(some_int(value.map(i64::from)))
}

pub(crate) fn serverproperty(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let number = |n: i64| SqlValue::Variant(Box::new((SqlType::Int, SqlValue::Int(n))));
    let named =
        |t: &str| SqlValue::Variant(Box::new((crate::engine::kinds::kind::nvarchar(128), SqlValue::Text(t.into()))));
    let version = call.engine.version();
    Ok(match text(arguments, 0).unwrap_or("").to_lowercase().as_str() {
        "productversion" => named(&format!("{}.{}.{}.1", version.0, version.1, version.2)),
        "productmajorversion" => named(&version.0.to_string()),
        "productminorversion" => named(&version.1.to_string()),
        "productbuild" => named(&version.2.to_string()),
        "productlevel" => named("RTM"),
        "edition" => named("Developer Edition (64-bit)"),
        // 3: Enterprise, which Developer Edition also says.
        "engineedition" => number(3),
        "servername" | "machinename" | "computernamephysicalnetbios" => named(call.engine.server_name()),
        "instancename" => SqlValue::Null,
        "collation" => named(crate::engine::catalogue::DEFAULT_COLLATION),
        "isclustered" | "ishadrenabled" | "isintegratedsecurityonly" | "issingleuser" => number(0),
        "lcid" => number(1033),
        "processid" => number(std::process::id().into()),
        _ => SqlValue::Null,
    })
}

pub(crate) fn databasepropertyex(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let Some(database) = text(arguments, 0).and_then(|n| call.engine.world().database(n)) else {
        return Ok(SqlValue::Null);
    };
    let named =
        |t: &str| SqlValue::Variant(Box::new((crate::engine::kinds::kind::nvarchar(128), SqlValue::Text(t.into()))));
    Ok(match text(arguments, 1).unwrap_or("").to_lowercase().as_str() {
        "status" => named(if database.online { "ONLINE" } else { "OFFLINE" }),
        "collation" => named(&database.collation),
        "updateability" => named("READ_WRITE"),
        "recovery" => named("FULL"),
        "useraccess" => named("MULTI_USER"),
        _ => SqlValue::Null,
    })
}

/// Names of the login, the client and the user.
pub(crate) fn who(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let login = &call.session.login;
    Ok(match call.signature.name {
        "APP_NAME" => SqlValue::Text(login.application.clone()),
        "HOST_NAME" => SqlValue::Text(login.host.clone()),
        "USER_NAME" | "CURRENT_USER" | "SESSION_USER" | "USER" if arguments.is_empty() => {
            let is_owner = call.engine.world().is_sysadmin(&login.user);
            let user = current(call).and_then(|d| d.user_of(&login.user).map(|u| u.name.clone()));
            SqlValue::Text(if is_owner { "dbo".into() } else { user.unwrap_or_else(|| "guest".into()) })
        }
        _ => SqlValue::Text(login.user.clone()),
    })
}

pub(crate) fn has_dbaccess(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let world = call.engine.world();
    let database = text(arguments, 0).and_then(|n| world.database(n));
    Ok(some_int(database.map(|d| i32::from(d.online && world.may_enter(&d, &call.session.login.user)))))
}

pub(crate) fn is_member(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let world = call.engine.world();
    let role = text(arguments, 0).unwrap_or("");
    let user = &call.session.login.user;
    if call.signature.name == "IS_SRVROLEMEMBER" {
        return Ok(SqlValue::Int((world.is_sysadmin(user) || role.eq_ignore_ascii_case("public")).into()));
    }
    let is = world.is_sysadmin(user)
        || role.eq_ignore_ascii_case("public")
        || current(call).is_some_and(|d| d.user_of(user).is_some_and(|u| u.roles.iter().any(|r| same_name(r, role))));
    Ok(SqlValue::Int(is.into()))
}

/// `@@SPID`, `@@TRANCOUNT` and other numbers of the session.
pub(crate) fn session_number(call: &Call<'_>, _: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let session = call.session;
    Ok(match call.signature.name {
        "@@SPID" => SqlValue::Int(session.id.into()),
        "@@LOCK_TIMEOUT" => SqlValue::Int(session.read(|s| s.lock_timeout.map_or(-1, i64::from))),
        "@@TRANCOUNT" => SqlValue::Int(session.read(|s| s.trancount.into())),
        "XACT_STATE" => SqlValue::Int(session.read(|s| match (s.trancount, s.doomed) {
            (0, _) => 0,
            (_, true) => -1,
            _ => 1,
        })),
        "@@ROWCOUNT" | "ROWCOUNT_BIG" => SqlValue::Int(session.read(|s| s.rowcount)),
        "@@ERROR" => SqlValue::Int(session.read(|s| s.error.into())),
        "@@MAX_PRECISION" => SqlValue::Int(38),
        "@@PROCID" | "@@NESTLEVEL" | "@@CURSOR_ROWS" => SqlValue::Int(0),
        "@@FETCH_STATUS" => SqlValue::Int(-1),
        "@@DATEFIRST" => SqlValue::Int(7),
        "@@OPTIONS" => SqlValue::Int(5496),
        "@@TEXTSIZE" => SqlValue::Int(2_147_483_647),
        "CURRENT_TRANSACTION_ID" => some_int(session.read(|s| s.transaction.map(|t| t as i64))),
        _ => SqlValue::Null,
    })
}

pub(crate) fn identity(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let decimal = |n: i64| SqlValue::Decimal { units: n.into(), scale: 0 };
    if call.signature.name != "IDENT_CURRENT" {
        return Ok(call.session.read(|s| s.identity.map_or(SqlValue::Null, decimal)));
    }
    let value = (|| {
        let name = split_name(text(arguments, 0)?)?;
        let world = call.engine.world();
        let database = match &name.database {
            Some(d) => world.database(d)?,
            None => current(call)?,
        };
        let table = database.table(name.schema(), &name.object)?;
        let identity = table.columns.iter().find_map(|c| c.identity.as_ref())?;
        let last = identity.last.load(Ordering::SeqCst);
        Some(if last == i64::MIN { identity.seed } else { last })
    })();
    Ok(value.map_or(SqlValue::Null, decimal))
}

pub(crate) fn server_text(call: &Call<'_>, _: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Text(match call.signature.name {
        "@@VERSION" => call.engine.version_text(),
        "@@SERVERNAME" => call.engine.server_name().to_owned(),
        "@@LANGUAGE" => "us_english".into(),
        "@@SERVICENAME" => "MSSQLSERVER".into(),
        _ => String::new(),
    }))
}

/// `ERROR_NUMBER()` and its kin: NULL outside of `CATCH`.
pub(crate) fn caught(call: &Call<'_>, _: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(call.session.read(|s| {
        let Some((error, line)) = &s.caught else { return SqlValue::Null };
        match call.signature.name {
            "ERROR_NUMBER" => SqlValue::Int(error.number.into()),
            "ERROR_SEVERITY" => SqlValue::Int(error.class.into()),
            "ERROR_STATE" => SqlValue::Int(error.state.into()),
            "ERROR_LINE" => SqlValue::Int((*line).into()),
            "ERROR_MESSAGE" => SqlValue::Text(error.text.clone()),
            _ => SqlValue::Null,
        }
    }))
}

/// A bit mask of the columns' numbers that an `UPDATE` names is kept nowhere; `HAS_PERMS_BY_NAME` answers for
/// the database alone.
pub(crate) fn has_perms_by_name(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let world = call.engine.world();
    let user = &call.session.login.user;
    let allowed = match (text(arguments, 0), current(call)) {
        (_, None) => false,
        (None, Some(database)) => world.may(&database, user, text(arguments, 2).unwrap_or(""), None),
        (Some(name), Some(current)) => {
            let Some(name) = split_name(name) else { return Ok(SqlValue::Null) };
            let database = name.database.as_deref().map_or(Some(current), |d| world.database(d));
            let permission = text(arguments, 2).unwrap_or("");
            match database.as_ref().and_then(|d| d.table(name.schema(), &name.object).map(|t| (d, t))) {
                Some((database, table)) => world.may(database, user, permission, Some(table)),
                None => return Ok(SqlValue::Null),
            }
        }
    };
    Ok(SqlValue::Int(allowed.into()))
}
