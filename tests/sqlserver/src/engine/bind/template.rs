//! Functions that are queries: T-SQL with places for arguments, bound like any other text.

use std::fmt::Write as _;

use sqlparser::ast::Expr;

use super::Binder;
use super::query::Bound;
use super::typed::Typed;
use crate::engine::cdc::capture::Capture;
use crate::engine::fault::SqlError;
use crate::engine::functions::Call;
use crate::engine::kinds::convert::to_hex;
use crate::engine::kinds::kind::nvarchar;
use crate::engine::kinds::text::same_name;
use crate::engine::log::Lsn;
use crate::engine::sql;
use crate::engine::sql::statement::Name;
use crate::types::SqlType;
use crate::value::SqlValue;

/// `name` as T-SQL quotes it.
pub(crate) fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

impl Binder<'_> {
    fn template(&mut self, text: &str, arguments: Vec<Typed>) -> Result<Typed, SqlError> {
        let expr = sql::expression(text)?;
        let outer = std::mem::replace(&mut self.placeholders, arguments);
        let typed = self.value(&expr);
        self.placeholders = outer;
        typed
    }

    /// Scalar functions of change data capture that look into its tables; `None`: none of them.
    pub(super) fn cdc_function(
        &mut self,
        name: &str,
        database: Option<&str>,
        exprs: &[&Expr],
    ) -> Result<Option<Typed>, SqlError> {
        let known = ["FN_CDC_GET_MAX_LSN", "FN_CDC_MAP_LSN_TO_TIME", "FN_CDC_MAP_TIME_TO_LSN"];
        if !known.contains(&name) {
            return Ok(None);
        }
        let local = Name { database: database.map(str::to_owned), schema: None, object: String::new() };
        let database = self.database(&local)?;
        if database.cdc.is_none() {
            return Err(SqlError::unknown_object("cdc.lsn_time_mapping"));
        }
        let mapping = format!("{}.cdc.lsn_time_mapping", bracketed(&database.name));
        let arguments = exprs.iter().map(|e| self.value(e)).collect::<Result<Vec<_>, _>>()?;
        let wrong = || {
            SqlError::new(
                313,
                format!(
                    "An insufficient number of arguments were supplied for the procedure or function {}.",
                    name.to_lowercase()
                ),
            )
        };
        let typed = match (name, exprs) {
            // "sys.fn_cdc_get_max_lsn": the highest of what the capture process has seen; NULL before.
            ("FN_CDC_GET_MAX_LSN", []) => {
                self.template(&format!("(SELECT MAX(start_lsn) FROM {mapping})"), arguments)?
            }
            ("FN_CDC_MAP_LSN_TO_TIME", [_]) => {
                self.template(&format!("(SELECT tran_end_time FROM {mapping} WHERE start_lsn = @__0)"), arguments)?
            }
            ("FN_CDC_MAP_TIME_TO_LSN", [relation, _]) => {
                let relation = match relation {
                    Expr::Value(value) => value.value.clone().into_string().unwrap_or_default(),
                    _ => {
                        return Err(SqlError::unsupported(
                            "A relational operator of fn_cdc_map_time_to_lsn that is no literal",
                        ));
                    }
                };
                let (function, operator) = match relation.to_lowercase().as_str() {
                    "largest less than" => ("MAX", "<"),
                    "largest less than or equal" => ("MAX", "<="),
                    "smallest greater than" => ("MIN", ">"),
                    "smallest greater than or equal" => ("MIN", ">="),
                    other => {
                        let text =
                            format!("The relational operator '{other}' is not valid for fn_cdc_map_time_to_lsn.");
                        return Err(SqlError::new(22991, text));
                    }
                };
                self.template(
                    &format!("(SELECT {function}(start_lsn) FROM {mapping} WHERE tran_end_time {operator} @__1)"),
                    arguments,
                )?
            }
            _ => return Err(wrong()),
        };
        Ok(Some(typed))
    }

    /// `cdc.fn_cdc_get_all_changes_<instance>` and its like for net changes; `None`: no such function.
    ///
    /// "cdc.fn_cdc_get_all_changes_<capture_instance>": an interval outside of the instance's validity, or a
    /// NULL, is error 313; both ends belong to the interval.
    pub(super) fn change_function(&mut self, name: &Name, exprs: &[&Expr]) -> Result<Option<Bound>, SqlError> {
        if !name.schema.as_deref().is_some_and(|s| same_name(s, "cdc")) {
            return Ok(None);
        }
        let lower = name.object.to_lowercase();
        let (net, instance) = if let Some(rest) = lower.strip_prefix("fn_cdc_get_all_changes_") {
            (false, rest)
        } else if let Some(rest) = lower.strip_prefix("fn_cdc_get_net_changes_") {
            (true, rest)
        } else {
            return Ok(None);
        };
        let database = self.database(name)?;
        let Some(capture) =
            database.captures().iter().find(|c| same_name(&c.name, instance) && (!net || c.net_changes)).cloned()
        else {
            return Ok(None);
        };
        let title = if net { "cdc.fn_cdc_get_net_changes_ ... ." } else { "cdc.fn_cdc_get_all_changes_ ... ." };
        let insufficient = SqlError::new(
            313,
            format!("An insufficient number of arguments were supplied for the procedure or function {title}"),
        )
        .state(3);
        let [from, to, filter] = exprs else { return Err(insufficient) };
        let filter = self.value(filter)?;
        let filter = self.convert(filter, &nvarchar(30));
        let (from, to) = (self.value(from)?, self.value(to)?);
        let bytes = SqlType::Binary(10);
        let (from, to) = (self.convert(from, &bytes), self.convert(to, &bytes));
        // The ends are checked by the query itself, since they may be known only when it runs.
        let bound = |lsn: Lsn| Typed::new(format!("x'{}'", to_hex(&lsn.0)), SqlType::Binary(10));
        let ends = [bound(capture.start_lsn), bound(self.engine.jobs.captured(database.id))];
        let [first, last] = ends;
        let arguments = [from.clone(), to.clone(), filter.clone(), first, last];
        let guard = self.call("CDC_INTERVAL", interval, &arguments, SqlType::Int, (false, true), vec![title.into()]);
        let text = if net { net_changes(&capture, &database.name) } else { all_changes(&capture, &database.name) };
        let query = sql::query(&text)?;
        let outer = std::mem::replace(&mut self.placeholders, vec![from, to, filter, guard]);
        let scopes = std::mem::take(&mut self.scopes);
        let bound = self.query(&query);
        self.scopes = scopes;
        self.placeholders = outer;
        bound.map(Some)
    }
}

/// From, to, filter, first and last number that can be asked for. The note is the function's name.
fn interval(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let options: &[&str] = if call.note(0).contains("net") {
        &["all", "all with mask", "all with merge"]
    } else {
        &["all", "all update old"]
    };
    let known = matches!(&arguments[2], SqlValue::Text(t) if options.iter().any(|o| same_name(o, t.trim())));
    match arguments {
        [SqlValue::Bytes(from), SqlValue::Bytes(to), _, SqlValue::Bytes(first), SqlValue::Bytes(last)]
            if known && from <= to && from >= first && to <= last =>
        {
            Ok(SqlValue::Int(1))
        }
        _ => Err(SqlError::new(
            313,
            format!("An insufficient number of arguments were supplied for the procedure or function {}", call.note(0)),
        )
        .state(3)),
    }
}

/// Columns of the change table, in order, quoted.
fn columns(capture: &Capture, prefix: &str) -> String {
    capture.columns.iter().fold(String::new(), |mut all, column| {
        let _ = write!(all, ", {prefix}{}", bracketed(&column.name));
        all
    })
}

fn all_changes(capture: &Capture, database: &str) -> String {
    format!(
        "SELECT __$start_lsn, __$seqval, __$operation, __$update_mask{} FROM {}.cdc.{} WHERE @__3 = 1 AND __$start_lsn >= @__0 AND __$start_lsn <= @__1 AND (__$operation <> 3 OR @__2 = N'all update old')",
        columns(capture, ""),
        bracketed(database),
        bracketed(&capture.table_name()),
    )
}

/// "cdc.fn_cdc_get_net_changes_<capture_instance>": one row for each key, the last state of the interval; a
/// row that came and went in it is left out.
fn net_changes(capture: &Capture, database: &str) -> String {
    let table = format!("{}.cdc.{}", bracketed(database), bracketed(&capture.table_name()));
    let key = capture.key_names().map(|c| bracketed(&c)).collect::<Vec<_>>().join(", ");
    let order = "__$start_lsn, __$seqval, __$command_id, __$operation";
    let backwards = "__$start_lsn DESC, __$seqval DESC, __$command_id DESC, __$operation DESC";
    format!(
        "SELECT n.__$start_lsn, CASE WHEN n.__$operation = 1 THEN 1 WHEN n.first_operation = 2 THEN 2 WHEN @__2 = N'all with merge' THEN 5 ELSE 4 END AS __$operation, \
         CASE WHEN @__2 = N'all with mask' THEN n.__$update_mask END AS __$update_mask{columns} FROM \
         (SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {backwards}) AS last_row, \
         FIRST_VALUE(__$operation) OVER (PARTITION BY {key} ORDER BY {order}) AS first_operation \
         FROM {table} WHERE @__3 = 1 AND __$start_lsn >= @__0 AND __$start_lsn <= @__1 AND __$operation <> 3) AS n \
         WHERE n.last_row = 1 AND NOT (n.__$operation = 1 AND n.first_operation = 2)",
        columns = columns(capture, "n."),
    )
}
