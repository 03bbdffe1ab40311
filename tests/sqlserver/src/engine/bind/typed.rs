//! An expression in SQLite's SQL, and what T-SQL knows of it.

use super::Binder;
use crate::engine::fault::SqlError;
use crate::engine::functions::operators;
use crate::engine::functions::{CALL, CALL_AGAIN, Eval, Signature};
use crate::engine::kinds::kind::Family;
use crate::engine::kinds::text;
use crate::types::SqlType;

#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) sql: String,
    pub(crate) kind: SqlType,
    pub(crate) nullable: bool,
    /// SQLite's collation of texts.
    pub(crate) order: &'static str,
    /// Whose collation wins: 0 literals and variables, 1 columns, 2 `COLLATE`.
    pub(crate) rank: u8,
    /// The literal NULL, which takes any type.
    pub(crate) is_null: bool,
    pub(crate) identity: bool,
    pub(crate) computed: bool,
}

impl Typed {
    pub(crate) fn new(sql: impl Into<String>, kind: SqlType) -> Self {
        Self {
            sql: sql.into(),
            kind,
            nullable: true,
            order: text::CI,
            rank: 0,
            is_null: false,
            identity: false,
            computed: false,
        }
    }

    pub(crate) fn null() -> Self {
        Self { is_null: true, ..Self::new("NULL", SqlType::Int) }
    }

    pub(crate) fn not_null(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// A literal of T-SQL's own.
    pub(crate) fn text_literal(text: &str) -> Self {
        Self::new(quoted(text), crate::engine::kinds::kind::nvarchar(text::units(text))).not_null()
    }

    /// With its collation, where SQLite does not know it from a column.
    pub(crate) fn collated(&self) -> String {
        if self.kind.is_text() { format!("{} COLLATE {}", self.sql, self.order) } else { self.sql.clone() }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    // SQLite ends a text at a zero character.
    if text.contains('\0') {
        let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
        return format!("CAST(x'{hex}' AS TEXT)");
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether both types are kept in the same form, so that values compare as they are.
fn same_form(a: &SqlType, b: &SqlType) -> bool {
    if a == b {
        return true;
    }
    match (a.family(), b.family()) {
        (Family::Integer, Family::Integer)
        | (Family::Money, Family::Money)
        | (Family::Float, Family::Float)
        | (Family::Text, Family::Text)
        | (Family::Bytes, Family::Bytes) => true,
        (Family::Decimal, Family::Decimal) => a.digits().1 == b.digits().1,
        (Family::Temporal, Family::Temporal) => {
            let instant =
                |k: &SqlType| matches!(k, SqlType::DateTime | SqlType::SmallDateTime | SqlType::DateTime2 { .. });
            let time = |k: &SqlType| matches!(k, SqlType::Time { .. });
            let zoned = |k: &SqlType| matches!(k, SqlType::DateTimeOffset { .. });
            instant(a) && instant(b) || time(a) && time(b) || zoned(a) && zoned(b)
        }
        _ => false,
    }
}

impl Binder<'_> {
    /// A call of one of our functions.
    pub(crate) fn call(
        &self,
        name: &'static str,
        eval: Eval,
        arguments: &[Typed],
        result: SqlType,
        (strict, pure): (bool, bool),
        notes: Vec<String>,
    ) -> Typed {
        let signature = Signature {
            name,
            eval,
            strict,
            arguments: arguments.iter().map(|a| a.kind.clone()).collect(),
            result: result.clone(),
            notes,
        };
        let number = self.engine.signatures.number(signature);
        let mut sql = format!("{}({number}", if pure { CALL } else { CALL_AGAIN });
        for argument in arguments {
            sql.push_str(", ");
            sql.push_str(&argument.sql);
        }
        sql.push(')');
        let texts = arguments.iter().filter(|a| a.kind.is_text()).max_by_key(|a| a.rank);
        let nullable = arguments.iter().any(|a| a.nullable);
        Typed {
            nullable,
            order: texts.map_or(text::CI, |t| t.order),
            rank: texts.map_or(0, |t| t.rank),
            ..Typed::new(sql, result)
        }
    }

    /// `CAST` and implicit conversion.
    pub(crate) fn convert(&self, from: Typed, to: &SqlType) -> Typed {
        if from.kind == *to || from.is_null {
            return Typed { kind: to.clone(), ..from };
        }
        // `bit` needs the call, everything else that keeps its form and does not get shorter does not.
        let longer = match (from.kind.length(), to.length()) {
            (_, None) => true,
            (Some(a), Some(b)) => a <= b,
            (None, Some(_)) => false,
        };
        let grows = match from.kind.family() {
            Family::Text => longer && !matches!(to, SqlType::Char(_) | SqlType::NChar(_)),
            Family::Bytes => longer && !matches!(to, SqlType::Binary(_) | SqlType::RowVersion),
            Family::Integer => {
                *to != SqlType::Bit && from.kind != SqlType::Bit && to.precedence() > from.kind.precedence()
            }
            Family::Decimal => to.digits().0 >= from.kind.digits().0,
            Family::Float => *to == SqlType::Float,
            _ => false,
        };
        if same_form(&from.kind, to) && grows {
            return Typed { kind: to.clone(), ..from };
        }
        let (order, rank) = (from.order, from.rank);
        Typed { order, rank, ..self.call("CAST", operators::cast, &[from], to.clone(), (true, true), Vec::new()) }
    }

    /// An assignment: what does not fit is an error. Notes: table and column, or nothing for a variable.
    pub(crate) fn store(&self, from: Typed, to: &SqlType, notes: Vec<String>) -> Typed {
        if from.is_null || from.kind == *to {
            return Typed { kind: to.clone(), ..from };
        }
        self.call("STORE", operators::store, &[from], to.clone(), (true, true), notes)
    }

    /// Both sides in a form in which SQLite compares them, with the collation put to the second.
    pub(crate) fn comparable(&self, left: Typed, right: Typed) -> Result<(String, String), SqlError> {
        let kind = common(&left, &right);
        if kind.is_lob() || kind == SqlType::Xml {
            return Err(SqlError::new(
                402,
                format!(
                    "The data types {} and {} are incompatible in the equal to operator.",
                    left.kind.name(),
                    right.kind.name()
                ),
            ));
        }
        let order = if right.rank > left.rank { right.order } else { left.order };
        let form = |side: Typed| {
            let side = if same_form(&side.kind, &kind) { side } else { self.convert(side, &kind) };
            self.comparing(side)
        };
        let (left, right) = (form(left), form(right));
        let right = if kind.is_text() { format!("{right} COLLATE {order}") } else { right };
        Ok((left, right))
    }

    /// The form by which a value is ordered and grouped.
    pub(crate) fn comparing(&self, side: Typed) -> String {
        if matches!(side.kind, SqlType::DateTimeOffset { .. }) && !side.is_null {
            let result = SqlType::DateTime2 { scale: 7 };
            return self.call("INSTANT", operators::instant, &[side], result, (true, true), Vec::new()).sql;
        }
        side.sql
    }
}

/// The type that both become.
pub(crate) fn common(left: &Typed, right: &Typed) -> SqlType {
    match (left.is_null, right.is_null) {
        (true, false) => right.kind.clone(),
        (false, true) => left.kind.clone(),
        _ => left.kind.common(&right.kind),
    }
}
