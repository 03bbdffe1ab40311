//! Aggregates and window functions.
//!
//! Follows "Aggregate functions (Transact-SQL)", "OVER clause", "Ranking functions", "Analytic functions".

use sqlparser::ast::{Expr, Function, FunctionArgumentClause, WindowFrameBound, WindowType};

use super::Binder;
use super::call::arguments;
use super::typed::{Typed, quoted};
use crate::engine::fault::SqlError;
use crate::engine::functions::aggregates::SUM_DECIMAL;
use crate::engine::functions::operators;
use crate::engine::kinds::kind::Family;
use crate::types::{Length, SqlType};

const AGGREGATES: &[&str] = &["COUNT", "COUNT_BIG", "SUM", "AVG", "MIN", "MAX", "STRING_AGG"];
const WINDOWS: &[&str] = &["ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"];

/// Whether an expression has an aggregate of its own query in it.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Function(f) => {
            let name = f.name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_uppercase()).unwrap_or_default();
            f.over.is_none() && AGGREGATES.contains(&name.as_str())
                || arguments(f).is_ok_and(|a| a.exprs.iter().any(|e| has_aggregate(e)))
        }
        Expr::BinaryOp { left, right, .. } => has_aggregate(left) || has_aggregate(right),
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) | Expr::Cast { expr, .. } | Expr::Convert { expr, .. } => {
            has_aggregate(expr)
        }
        Expr::IsNull(expr) | Expr::IsNotNull(expr) | Expr::Collate { expr, .. } => has_aggregate(expr),
        Expr::Between { expr, low, high, .. } => has_aggregate(expr) || has_aggregate(low) || has_aggregate(high),
        Expr::Case { operand, conditions, else_result, .. } => {
            operand.as_deref().is_some_and(has_aggregate)
                || else_result.as_deref().is_some_and(has_aggregate)
                || conditions.iter().any(|c| has_aggregate(&c.condition) || has_aggregate(&c.result))
        }
        _ => false,
    }
}

impl Binder<'_> {
    /// `None`: the name is no aggregate or window function.
    pub(super) fn aggregate(&mut self, name: &str, function: &Function) -> Result<Option<Typed>, SqlError> {
        let is_window = WINDOWS.contains(&name);
        if !is_window && !AGGREGATES.contains(&name) {
            return Ok(None);
        }
        // A window's parts are of the grouped query, an aggregate's arguments are of the rows below.
        let grouped = if function.over.is_some() { None } else { self.grouped.take() };
        let result = self.aggregate_parts(name, function);
        if grouped.is_some() {
            self.grouped = grouped;
        }
        let (parts, typed) = result?;
        let over = match &function.over {
            Some(window) => self.window(window, name)?,
            None if is_window => {
                return Err(SqlError::new(10753, format!("The function '{name}' must have an OVER clause.")).class(15));
            }
            None => String::new(),
        };
        let call = |part: &str| format!("{part}{over}");
        let typed = match (&parts[..], name) {
            // The average of integers and decimals is a sum divided by a count.
            ([sum, count], "AVG") => {
                let (sum, count) = (call(sum), call(count));
                match typed.kind.family() {
                    Family::Decimal => {
                        let (_, scale) = typed.kind.digits();
                        let sides = [
                            Typed::new(sum, SqlType::Numeric { precision: 38, scale: typed_scale(&typed) }),
                            Typed::new(format!("ifnull({count}, 0)"), SqlType::BigInt),
                        ];
                        let sides = [
                            sides[0].clone(),
                            self.convert(sides[1].clone(), &SqlType::Numeric { precision: 19, scale: 0 }),
                        ];
                        let result = SqlType::Numeric { precision: 38, scale: scale.max(6) };
                        self.call("/", operators::divide, &sides, result, (true, true), Vec::new())
                    }
                    Family::Float => Typed { sql: format!("({sum} / {count})"), ..typed },
                    _ => Typed { sql: format!("({sum} / nullif({count}, 0))"), ..typed },
                }
            }
            ([part, ..], _) => Typed { sql: call(part), ..typed },
            _ => typed,
        };
        Ok(Some(typed))
    }

    fn aggregate_parts(&mut self, name: &str, function: &Function) -> Result<(Vec<String>, Typed), SqlError> {
        let given = arguments(function)?;
        let distinct = if given.distinct { "DISTINCT " } else { "" };
        if given.star || matches!(name, "ROW_NUMBER" | "RANK" | "DENSE_RANK") {
            let (sql, kind) = match name {
                "COUNT" => ("count(*)", SqlType::Int),
                "COUNT_BIG" => ("count(*)", SqlType::BigInt),
                "ROW_NUMBER" => ("row_number()", SqlType::BigInt),
                "RANK" => ("rank()", SqlType::BigInt),
                "DENSE_RANK" => ("dense_rank()", SqlType::BigInt),
                _ => return Err(SqlError::near("*")),
            };
            return Ok((vec![sql.into()], Typed::new("", kind).not_null()));
        }
        let mut values = Vec::new();
        for expr in &given.exprs {
            values.push(self.value(expr)?);
        }
        let Some(first) = values.first().cloned() else {
            return Err(
                SqlError::new(174, format!("The {} function requires 1 argument(s).", name.to_lowercase())).class(15)
            );
        };
        let argument = &first.sql;
        Ok(match name {
            "COUNT" | "COUNT_BIG" => {
                let kind = if name == "COUNT" { SqlType::Int } else { SqlType::BigInt };
                (vec![format!("count({distinct}{})", first.collated())], Typed::new("", kind).not_null())
            }
            "MIN" | "MAX" => {
                let typed = Typed { nullable: true, identity: false, computed: false, ..first.clone() };
                (vec![format!("{}({distinct}{})", name.to_lowercase(), first.collated())], typed)
            }
            "SUM" | "AVG" => {
                let (sum, kind) = match first.kind.family() {
                    Family::Integer if first.kind != SqlType::Bit => {
                        let kind = if first.kind == SqlType::BigInt { SqlType::BigInt } else { SqlType::Int };
                        ("sum", kind)
                    }
                    Family::Money => ("sum", SqlType::Money),
                    Family::Float => ("sum", SqlType::Float),
                    Family::Decimal => {
                        let (_, scale) = first.kind.digits();
                        (SUM_DECIMAL, SqlType::Numeric { precision: 38, scale })
                    }
                    _ => {
                        let text = format!(
                            "Operand data type {} is invalid for {} operator.",
                            first.kind.name(),
                            name.to_lowercase()
                        );
                        return Err(SqlError::new(8117, text));
                    }
                };
                (
                    vec![format!("{sum}({distinct}{argument})"), format!("count({distinct}{argument})")],
                    Typed::new("", kind),
                )
            }
            "STRING_AGG" => {
                let text = if first.kind.is_text() {
                    first
                } else {
                    self.convert(first, &SqlType::NVarChar(Length::Limited(4000)))
                };
                let separator = values.get(1).map_or_else(|| quoted(","), |s| s.sql.clone());
                let kind =
                    if text.kind.is_unicode() { SqlType::NVarChar(Length::Max) } else { SqlType::VarChar(Length::Max) };
                let mut order = String::new();
                for clause in &function.within_group {
                    let term = self.order_term(clause)?;
                    order.push_str(if order.is_empty() { " ORDER BY " } else { ", " });
                    order.push_str(&term);
                }
                if let sqlparser::ast::FunctionArguments::List(list) = &function.args {
                    for clause in &list.clauses {
                        if let FunctionArgumentClause::OrderBy(_) = clause {
                            return Err(SqlError::near("ORDER"));
                        }
                    }
                }
                (vec![format!("group_concat({}, {separator}{order})", text.sql)], Typed::new("", kind))
            }
            "NTILE" => (vec![format!("ntile({argument})")], Typed::new("", SqlType::BigInt).not_null()),
            "LAG" | "LEAD" => {
                let offset = values.get(1).map_or_else(|| "1".to_owned(), |o| o.sql.clone());
                let default = match values.get(2).cloned() {
                    Some(default) => format!(", {}", self.convert(default, &first.kind).sql),
                    None => String::new(),
                };
                (
                    vec![format!("{}({argument}, {offset}{default})", name.to_lowercase())],
                    Typed { nullable: true, ..first },
                )
            }
            _ => (vec![format!("{}({argument})", name.to_lowercase())], Typed { nullable: true, ..first }),
        })
    }

    fn window(&mut self, window: &WindowType, name: &str) -> Result<String, SqlError> {
        let WindowType::WindowSpec(spec) = window else { return Err(SqlError::unsupported("A named window")) };
        let mut sql = String::from(" OVER (");
        for (n, expr) in spec.partition_by.iter().enumerate() {
            let typed = self.value(expr)?;
            sql.push_str(if n == 0 { "PARTITION BY " } else { ", " });
            sql.push_str(&typed.collated());
        }
        for (n, order) in spec.order_by.iter().enumerate() {
            let term = self.order_term(order)?;
            sql.push_str(if n == 0 { " ORDER BY " } else { ", " });
            sql.push_str(&term);
        }
        if spec.order_by.is_empty() && WINDOWS.contains(&name) {
            return Err(
                SqlError::new(4112, format!("The function '{name}' must have an OVER clause with ORDER BY.")).class(15)
            );
        }
        if let Some(frame) = &spec.window_frame {
            let mut bound = |b: &WindowFrameBound| -> Result<String, SqlError> {
                Ok(match b {
                    WindowFrameBound::CurrentRow => "CURRENT ROW".into(),
                    WindowFrameBound::Preceding(None) => "UNBOUNDED PRECEDING".into(),
                    WindowFrameBound::Following(None) => "UNBOUNDED FOLLOWING".into(),
                    WindowFrameBound::Preceding(Some(n)) => format!("{} PRECEDING", self.value(n)?.sql),
                    WindowFrameBound::Following(Some(n)) => format!("{} FOLLOWING", self.value(n)?.sql),
                })
            };
            let start = bound(&frame.start_bound)?;
            let end = match &frame.end_bound {
                Some(end) => bound(end)?,
                None => "CURRENT ROW".into(),
            };
            sql.push_str(&format!(" {} BETWEEN {start} AND {end}", frame.units));
        }
        sql.push(')');
        Ok(sql)
    }
}

fn typed_scale(typed: &Typed) -> u8 {
    typed.kind.digits().1
}
