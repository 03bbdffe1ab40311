//! Expressions and conditions.
//!
//! Follows "Expressions (Transact-SQL)", "Search condition", "Data type precedence".

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, Expr, Ident, TrimWhereField, UnaryOperator,
    Value as Literal,
};

use super::Binder;
use super::literal::{literal, number};
use super::typed::{Typed, common};
use crate::engine::fault::SqlError;
use crate::engine::functions::operators;
use crate::engine::kinds::kind::{Family, nvarchar, varbinary, varchar};
use crate::engine::kinds::text::{self, order_of, same_name};
use crate::engine::kinds::{decimal, stored};
use crate::engine::sql::statement::{Name, TypeName};
use crate::types::SqlType;

impl Binder<'_> {
    /// An expression that gives a value.
    pub(crate) fn value(&mut self, expr: &Expr) -> Result<Typed, SqlError> {
        // What GROUP BY names is known as a whole, before its parts are looked at.
        if let Some(grouped) = self.grouped.take() {
            let whole = if matches!(expr, Expr::Function(_) | Expr::Value(_) | Expr::Subquery(_)) {
                Err(SqlError::near(""))
            } else {
                self.plain_value(expr)
            };
            let matches = whole.as_ref().is_ok_and(|t| grouped.contains(&t.sql));
            self.grouped = Some(grouped);
            if matches {
                return whole;
            }
        }
        self.plain_value(expr)
    }

    fn plain_value(&mut self, expr: &Expr) -> Result<Typed, SqlError> {
        match expr {
            Expr::Identifier(ident) => self.identifier(ident),
            Expr::CompoundIdentifier(parts) => self.column(parts),
            Expr::Value(value) => match (&value.value, &self.action) {
                (Literal::Placeholder(text), Some(action)) if text.eq_ignore_ascii_case("$action") => Ok(action.clone()),
                (value, _) => literal(value),
            },
            Expr::Nested(inner) => self.value(inner),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::Cast { kind, expr, data_type, .. } => {
                let is_try = !matches!(kind, CastKind::Cast);
                self.cast(expr, data_type, None, is_try)
            }
            Expr::Convert { is_try, expr, data_type: Some(data_type), styles, .. } => self.cast(expr, data_type, styles.first(), *is_try),
            Expr::Case { operand, conditions, else_result, .. } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Expr::Subquery(query) => {
                let bound = self.subquery(query)?;
                let [column] = &bound.columns[..] else {
                    return Err(SqlError::new(
                        116,
                        "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
                    ));
                };
                Ok(Typed { nullable: true, ..Typed { sql: format!("({})", bound.sql), ..column.typed.clone() } })
            }
            Expr::Function(function) => self.function(function),
            Expr::Collate { expr, collation } => {
                let inner = self.value(expr)?;
                let name = collation.0.last().and_then(|p| p.as_ident()).map_or("", |i| &i.value);
                let order = if name.eq_ignore_ascii_case("database_default") { text::CI } else { order_of(name) };
                Ok(Typed { order, rank: 2, ..inner })
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(_) } => self.apply("FLOOR", vec![expr.as_ref()]),
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(_) } => self.apply("CEILING", vec![expr.as_ref()]),
            Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let mut arguments = vec![expr.as_ref(), from];
                arguments.extend(substring_for.as_deref());
                self.apply("SUBSTRING", arguments)
            }
            Expr::Trim { expr, trim_where, trim_what: None, .. } => self.apply(
                match trim_where {
                    Some(TrimWhereField::Leading) => "LTRIM",
                    Some(TrimWhereField::Trailing) => "RTRIM",
                    _ => "TRIM",
                },
                vec![expr.as_ref()],
            ),
            Expr::AtTimeZone { timestamp, time_zone } => self.apply("AT TIME ZONE", vec![timestamp.as_ref(), time_zone.as_ref()]),
            Expr::Prefixed { prefix, value } if prefix.value.eq_ignore_ascii_case("N") => self.value(value),
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::In { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Exists { .. } => Err(SqlError::new(
                4145,
                format!("An expression of non-boolean type specified in a context where a condition is expected, near '{expr}'."),
            )
            .class(15)),
            other => Err(SqlError::unsupported(format!("The expression '{other}'"))),
        }
    }

    fn identifier(&mut self, ident: &Ident) -> Result<Typed, SqlError> {
        let name = &ident.value;
        if ident.quote_style.is_none() {
            if let Some(number) = name.strip_prefix("@__").and_then(|n| n.parse::<usize>().ok())
                && let Some(typed) = self.placeholders.get(number)
            {
                return Ok(typed.clone());
            }
            if name.starts_with("@@") || self.scopes.is_empty() && is_word_function(name) {
                return self.apply(name, Vec::new());
            }
            if name.starts_with('@') {
                return self.variable(name);
            }
        }
        match self.column(std::slice::from_ref(ident)) {
            Err(error) if error.number == 207 && ident.quote_style.is_none() && is_word_function(name) => {
                self.apply(name, Vec::new())
            }
            other => other,
        }
    }

    fn variable(&mut self, name: &str) -> Result<Typed, SqlError> {
        let key = name.to_lowercase();
        let Some((kind, value)) = self.variables.get(&key) else { return Err(SqlError::unknown_variable(name)) };
        let number = match self.numbered.get(&key) {
            Some(number) => *number,
            None => {
                self.parameters.push(stored::encode(value, kind));
                self.numbered.insert(key, self.parameters.len());
                self.parameters.len()
            }
        };
        Ok(Typed::new(format!("?{number}"), kind.clone()))
    }

    /// A column by one to four parts. Errors: 207, 209, 4104, 8120.
    fn column(&mut self, parts: &[Ident]) -> Result<Typed, SqlError> {
        let names: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
        let Some((name, qualifiers)) = names.split_last() else { return Err(SqlError::near("")) };
        for (depth, scope) in self.scopes.iter().rev().enumerate() {
            let mut found = scope
                .sources
                .iter()
                .filter(|s| s.is_named(qualifiers))
                .flat_map(|s| s.columns.iter().map(move |c| (s, c)))
                .filter(|(_, c)| same_name(&c.name, name));
            let Some((source, column)) = found.next() else { continue };
            if found.next().is_some() {
                return Err(SqlError::new(209, format!("Ambiguous column name '{name}'.")));
            }
            let typed = column.typed.clone();
            if depth == 0 && self.grouped.as_ref().is_some_and(|g| !g.contains(&typed.sql)) {
                let text = format!(
                    "Column '{}.{}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.",
                    source.title(),
                    column.name
                );
                return Err(SqlError::new(8120, text));
            }
            return Ok(typed);
        }
        if qualifiers.is_empty() {
            return Err(SqlError::unknown_column(name));
        }
        let known = self.scopes.iter().any(|s| s.sources.iter().any(|s| s.is_named(qualifiers)));
        if known {
            return Err(SqlError::unknown_column(name));
        }
        Err(SqlError::new(4104, format!("The multi-part identifier \"{}\" could not be bound.", names.join("."))))
    }

    fn unary(&mut self, op: UnaryOperator, expr: &Expr) -> Result<Typed, SqlError> {
        // A sign belongs to the number: -2147483648 is an int, and equal expressions stay equal texts.
        if let (UnaryOperator::Minus, Expr::Value(value)) = (op, expr)
            && let Literal::Number(text, _) = &value.value
        {
            return number(&format!("-{text}"));
        }
        let inner = self.value(expr)?;
        match op {
            UnaryOperator::Plus => Ok(inner),
            UnaryOperator::Minus => {
                let kind = inner.kind.clone();
                let kind = if kind == SqlType::Bit { SqlType::Int } else { kind };
                Ok(self.call("-", operators::negate, &[inner], kind, (true, true), Vec::new()))
            }
            UnaryOperator::BitwiseNot if inner.kind.family() == Family::Integer => {
                let kind = inner.kind.clone();
                if kind == SqlType::Bit {
                    return Ok(Typed { sql: format!("(1 - {})", inner.sql), ..inner });
                }
                Ok(Typed { sql: format!("(~ {})", inner.sql), ..Typed::new("", kind) })
            }
            other => Err(SqlError::unsupported(format!("The operator '{other}' here"))),
        }
    }

    fn binary(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Typed, SqlError> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        match op {
            BinaryOperator::Plus => self.arithmetic('+', left, right),
            BinaryOperator::Minus => self.arithmetic('-', left, right),
            BinaryOperator::Multiply => self.arithmetic('*', left, right),
            BinaryOperator::Divide => self.arithmetic('/', left, right),
            BinaryOperator::Modulo => self.arithmetic('%', left, right),
            BinaryOperator::BitwiseAnd => Ok(self.bits("&", operators::bit_and, left, right)),
            BinaryOperator::BitwiseOr => Ok(self.bits("|", operators::bit_or, left, right)),
            BinaryOperator::BitwiseXor => Ok(self.bits("^", operators::bit_xor, left, right)),
            other => Err(SqlError::new(102, format!("Incorrect syntax near '{other}'.")).class(15)),
        }
    }

    fn bits(&self, name: &'static str, eval: crate::engine::functions::Eval, left: Typed, right: Typed) -> Typed {
        let kind = match common(&left, &right) {
            kind if kind.family() == Family::Integer => kind,
            _ => SqlType::Int,
        };
        let sides = [self.convert(left, &kind), self.convert(right, &kind)];
        self.call(name, eval, &sides, kind, (true, true), Vec::new())
    }

    pub(crate) fn arithmetic(&self, operator: char, left: Typed, right: Typed) -> Result<Typed, SqlError> {
        let kind = common(&left, &right);
        if operator == '+' && matches!(kind.family(), Family::Text | Family::Bytes) {
            let total = left.kind.length().zip(right.kind.length()).map(|(a, b)| usize::from(a) + usize::from(b));
            let result = match &kind {
                k if k.is_unicode() => {
                    total.map_or(SqlType::NVarChar(crate::types::Length::Max), |n| nvarchar(n.min(4000)))
                }
                k if k.is_text() => total.map_or(SqlType::VarChar(crate::types::Length::Max), |n| varchar(n.min(8000))),
                _ => total.map_or(SqlType::VarBinary(crate::types::Length::Max), |n| varbinary(n.min(8000))),
            };
            let sides = [self.convert(left, &kind), self.convert(right, &kind)];
            return Ok(self.call("CONCATENATE", operators::concatenate, &sides, result, (true, true), Vec::new()));
        }
        let (name, eval): (_, crate::engine::functions::Eval) = match operator {
            '+' => ("+", operators::add),
            '-' => ("-", operators::subtract),
            '*' => ("*", operators::multiply),
            '/' => ("/", operators::divide),
            _ => ("%", operators::modulo),
        };
        let (kind, result) = match kind.family() {
            Family::Integer => {
                let kind = if kind == SqlType::Bit { SqlType::Int } else { kind };
                (Some(kind.clone()), kind)
            }
            Family::Decimal => {
                // Each side is a decimal of its own precision and scale.
                let digits = |t: &Typed| if t.kind.family() == Family::Text { kind.digits() } else { t.kind.digits() };
                let (a, b) = (digits(&left), digits(&right));
                let result = decimal::result(operator, a, b);
                let side =
                    |t: Typed, (precision, scale): (u8, u8)| self.convert(t, &SqlType::Numeric { precision, scale });
                let sides = [side(left, a), side(right, b)];
                return Ok(self.call(name, eval, &sides, result, (true, true), Vec::new()));
            }
            Family::Money => (Some(SqlType::Money), SqlType::Money),
            Family::Float => (Some(SqlType::Float), kind),
            Family::Temporal
                if matches!(kind, SqlType::DateTime | SqlType::SmallDateTime) && matches!(operator, '+' | '-') =>
            {
                (Some(SqlType::DateTime), kind)
            }
            _ => {
                let word = match operator {
                    '+' => "add",
                    '-' => "subtract",
                    '*' => "multiply",
                    '/' => "divide",
                    _ => "modulo",
                };
                let text = if left.kind == right.kind || left.kind.family() == right.kind.family() {
                    return Err(SqlError::new(
                        8117,
                        format!("Operand data type {} is invalid for {word} operator.", left.kind.name()),
                    ));
                } else {
                    format!(
                        "The data types {} and {} are incompatible in the {word} operator.",
                        left.kind.name(),
                        right.kind.name()
                    )
                };
                return Err(SqlError::new(402, text));
            }
        };
        let kind = kind.unwrap_or_else(|| result.clone());
        let sides = [self.convert(left, &kind), self.convert(right, &kind)];
        Ok(self.call(name, eval, &sides, result, (true, true), Vec::new()))
    }

    fn cast(
        &mut self,
        expr: &Expr,
        data_type: &DataType,
        style: Option<&Expr>,
        is_try: bool,
    ) -> Result<Typed, SqlError> {
        let inner = self.value(expr)?;
        let to = self.data_type(data_type)?;
        let mut arguments = vec![inner];
        if let Some(style) = style {
            let style = self.value(style)?;
            arguments.push(self.convert(style, &SqlType::Int));
        }
        if arguments[0].is_null {
            return Ok(Typed { kind: to, ..Typed::null() });
        }
        if arguments.len() == 1 && !is_try {
            let inner = arguments.remove(0);
            let unchanged = inner.kind == to;
            let cast = self.convert(inner, &to);
            return Ok(if unchanged { cast } else { Typed { identity: false, computed: false, ..cast } });
        }
        let (name, eval): (_, crate::engine::functions::Eval) =
            if is_try { ("TRY_CAST", operators::try_cast) } else { ("CAST", operators::cast) };
        let (order, rank) = (arguments[0].order, arguments[0].rank);
        let nullable = is_try || arguments.iter().any(|a| a.nullable);
        let cast = self.call(name, eval, &arguments, to, (true, true), Vec::new());
        Ok(Typed { order, rank, nullable, ..cast })
    }

    /// In `CAST` a length that is missing is 30.
    pub(crate) fn data_type(&self, data_type: &DataType) -> Result<SqlType, SqlError> {
        let text = data_type.to_string();
        let (name, rest) = text.split_once('(').unwrap_or((&text, ""));
        let sizes: Vec<Option<u32>> = rest
            .trim_end_matches(')')
            .split(',')
            .filter(|s| !s.trim().is_empty())
            .map(|s| s.trim().parse().ok())
            .collect();
        let clean = |part: &str| part.trim_matches(['[', ']', '"']).to_owned();
        let (schema, object) = match name.trim().rsplit_once('.') {
            Some((schema, object)) => (Some(clean(schema)).filter(|s| s != "sys"), clean(object)),
            None => (None, clean(name.trim())),
        };
        let is_empty = sizes.is_empty();
        let kind = self.kind(&TypeName { name: Name { database: None, schema, object }, sizes })?;
        Ok(match kind {
            SqlType::VarChar(_) if is_empty => varchar(30),
            SqlType::NVarChar(n) if is_empty && n == crate::types::Length::Limited(1) => nvarchar(30),
            SqlType::VarBinary(_) if is_empty => varbinary(30),
            SqlType::Char(_) if is_empty => SqlType::Char(30),
            SqlType::NChar(_) if is_empty => SqlType::NChar(30),
            SqlType::Binary(_) if is_empty => SqlType::Binary(30),
            other => other,
        })
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<Typed, SqlError> {
        let mut results = Vec::new();
        let mut whens = Vec::new();
        for CaseWhen { condition, result } in conditions {
            whens.push(match operand {
                Some(operand) => self.compare(operand, "=", condition)?,
                None => self.condition(condition)?,
            });
            results.push(self.value(result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.value(otherwise)?,
            None => Typed::null(),
        });
        Ok(self.choose(&whens, results))
    }

    /// `CASE` over bound parts; there is one result more than conditions.
    pub(crate) fn choose(&self, whens: &[String], results: Vec<Typed>) -> Typed {
        let kind = results
            .iter()
            .filter(|r| !r.is_null)
            .map(|r| r.kind.clone())
            .reduce(|a, b| a.common(&b))
            .unwrap_or(SqlType::Int);
        let best = results.iter().filter(|r| r.kind.is_text() && !r.is_null).max_by_key(|r| r.rank);
        let (order, rank) = best.map_or((text::CI, 0), |b| (b.order, b.rank));
        let nullable = results.iter().any(|r| r.nullable);
        let mut sql = String::from("CASE");
        let results: Vec<String> = results.into_iter().map(|r| self.convert(r, &kind).sql).collect();
        for (when, result) in whens.iter().zip(&results) {
            sql.push_str(&format!(" WHEN {when} THEN {result}"));
        }
        if let Some(last) = results.get(whens.len()) {
            sql.push_str(&format!(" ELSE {last}"));
        }
        sql.push_str(" END");
        Typed { order, rank, nullable, ..Typed::new(format!("({sql})"), kind) }
    }
}

/// Functions that are called without parentheses.
fn is_word_function(name: &str) -> bool {
    ["CURRENT_TIMESTAMP", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER"]
        .iter()
        .any(|w| w.eq_ignore_ascii_case(name))
}
