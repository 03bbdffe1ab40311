//! `CROSS APPLY` and `OUTER APPLY`.
//!
//! Follows "FROM clause plus JOIN, APPLY, PIVOT (Transact-SQL)": the right side is evaluated for each row of the
//! left one, whose columns it can name.

use sqlparser::ast::TableFactor;

use super::Binder;
use super::query::Bound;
use super::source::{plain, source_of};
use crate::engine::fault::SqlError;
use crate::engine::functions::packed::{PACK, UNPACK};
use crate::engine::sql;

impl Binder<'_> {
    /// The text of the join; `outer`: rows of the left side without any of the right one stay.
    pub(super) fn apply_side(&mut self, factor: &TableFactor, outer: bool) -> Result<String, SqlError> {
        let (bound, alias) = match factor {
            TableFactor::Derived { subquery, alias, .. } => (self.subquery(subquery)?, alias.as_ref()),
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                let Some(name) = sql::name_of(name) else { return Err(SqlError::unsupported("A name of four parts")) };
                let exprs = plain(&args.args)?;
                let found: Option<Bound> = self.change_function(&name, &exprs)?;
                (found.ok_or_else(|| SqlError::unknown_object(&name.text()))?, alias.as_ref())
            }
            other => {
                let side = self.factor(other)?;
                return Ok(if outer { format!(" LEFT JOIN {side} ON 1") } else { format!(" CROSS JOIN {side}") });
            }
        };
        let title = alias.map_or(String::new(), |a| a.name.value.clone());
        let kept = self.alias("j");
        let mut columns: Vec<_> = bound.columns.iter().map(|c| (c.name.clone(), c.typed.clone())).collect();
        for (column, renamed) in columns.iter_mut().zip(alias.iter().flat_map(|a| &a.columns)) {
            column.0.clone_from(&renamed.name.value);
        }
        if let Some(at) = columns.iter().position(|c| c.0.is_empty()) {
            let text = format!("No column name was specified for column {} of '{title}'.", at + 1);
            return Err(SqlError::new(8155, text));
        }
        let names: Vec<String> = (1..=columns.len()).map(|n| format!("k{n}")).collect();
        let rows = format!("(SELECT json_group_array({PACK}({})) FROM ({}))", names.join(", "), bound.sql);
        let mut source = source_of(&title, &kept, &columns);
        for (place, column) in source.columns.iter_mut().enumerate() {
            column.typed.sql = format!("{UNPACK}({kept}.value, {place})");
            column.typed.nullable |= outer;
        }
        self.add(source);
        Ok(if outer {
            format!(" LEFT JOIN json_each({rows}) AS {kept} ON 1")
        } else {
            format!(" CROSS JOIN json_each({rows}) AS {kept}")
        })
    }
}
