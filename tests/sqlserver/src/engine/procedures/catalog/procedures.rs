//! Procedures as drivers want them: "sp_stored_procedures (Transact-SQL)", "sp_sproc_columns (Transact-SQL)".

use super::columns::{flag, maybe, number, text};
use super::fits;
use crate::engine::catalogue::Procedure;
use crate::engine::fault::Outcome;
use crate::engine::kinds::kind::{SYSNAME, nvarchar, varchar};
use crate::engine::kinds::odbc::OdbcType;
use crate::engine::procedures::Given;
use crate::engine::run::{Frame, Runner};
use crate::session::Answers;
use crate::types::SqlType;
use crate::value::SqlValue;

/// `COLUMN_TYPE` of parameters.
const IN: i16 = 1;
const IN_AND_OUT: i16 = 2;
const STATUS: i16 = 5;

fn chosen(procedure: &Procedure, given: &Given, (name, owner): (&str, &str), patterns: bool) -> bool {
    fits(&procedure.name, given.text(name, 0).as_deref(), patterns)
        && fits(&procedure.schema, given.text(owner, 1).as_deref(), patterns)
}

/// With the number that the real server adds.
fn numbered(procedure: &Procedure) -> SqlValue {
    SqlValue::Text(format!("{};1", procedure.name))
}

impl Runner {
    pub(super) fn list_procedures(&self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        let patterns = given.int("fUsePattern", 3) != Some(0);
        let found = database.procedures.iter().filter(|p| chosen(p, given, ("sp_name", "sp_owner"), patterns));
        // How many parameters and results there are is not told.
        let rows = found.map(|p| {
            let head = vec![text(&database.name), text(&p.schema), numbered(p)];
            [head, vec![number(-1), number(-1), number(-1), SqlValue::Null, number(2)]].concat()
        });
        self.result(
            &[
                ("PROCEDURE_QUALIFIER", SYSNAME),
                ("PROCEDURE_OWNER", SYSNAME),
                ("PROCEDURE_NAME", nvarchar(134)),
                ("NUM_INPUT_PARAMS", SqlType::Int),
                ("NUM_OUTPUT_PARAMS", SqlType::Int),
                ("NUM_RESULT_SETS", SqlType::Int),
                ("REMARKS", varchar(254)),
                ("PROCEDURE_TYPE", SqlType::SmallInt),
            ],
            rows.collect(),
            answers,
        )
    }

    pub(super) fn list_parameters(&self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        let version = given.int("ODBCVer", 4).unwrap_or(2);
        let patterns = given.int("fUsePattern", 5) != Some(0);
        let wanted = given.text("column_name", 3);
        let frame = Frame::default();
        let mut rows = Vec::new();
        let names = ("procedure_name", "procedure_owner");
        for procedure in database.procedures.iter().filter(|p| chosen(p, given, names, patterns)) {
            let mut all = vec![("@RETURN_VALUE".to_owned(), SqlType::Int, STATUS)];
            for parameter in &procedure.parameters {
                let kind = self.binder(&frame).kind(&parameter.kind)?;
                all.push((parameter.name.clone(), kind, if parameter.output { IN_AND_OUT } else { IN }));
            }
            for ((name, kind, direction), place) in all.into_iter().zip(0..) {
                if !fits(&name, wanted.as_deref(), patterns) {
                    continue;
                }
                let odbc = OdbcType::of(&kind, version);
                let nullable = direction != STATUS;
                rows.push(vec![
                    text(&database.name),
                    text(&procedure.schema),
                    numbered(procedure),
                    SqlValue::Text(name),
                    number(direction),
                    number(odbc.number),
                    text(kind.name()),
                    number(odbc.precision),
                    number(odbc.length),
                    maybe(odbc.scale),
                    maybe(odbc.radix),
                    flag(nullable),
                    SqlValue::Null,
                    SqlValue::Null,
                    number(odbc.sql_number),
                    maybe(odbc.sql_datetime),
                    maybe(odbc.octets),
                    number(place),
                    text(if nullable { "YES" } else { "NO" }),
                    number(if nullable { odbc.old.1 } else { odbc.old.0 }),
                ]);
            }
        }
        self.result(
            &[
                ("PROCEDURE_QUALIFIER", SYSNAME),
                ("PROCEDURE_OWNER", SYSNAME),
                ("PROCEDURE_NAME", nvarchar(134)),
                ("COLUMN_NAME", SYSNAME),
                ("COLUMN_TYPE", SqlType::SmallInt),
                ("DATA_TYPE", SqlType::SmallInt),
                ("TYPE_NAME", SYSNAME),
                ("PRECISION", SqlType::Int),
                ("LENGTH", SqlType::Int),
                ("SCALE", SqlType::SmallInt),
                ("RADIX", SqlType::SmallInt),
                ("NULLABLE", SqlType::SmallInt),
                ("REMARKS", varchar(254)),
                ("COLUMN_DEF", nvarchar(4000)),
                ("SQL_DATA_TYPE", SqlType::SmallInt),
                ("SQL_DATETIME_SUB", SqlType::SmallInt),
                ("CHAR_OCTET_LENGTH", SqlType::Int),
                ("ORDINAL_POSITION", SqlType::Int),
                ("IS_NULLABLE", varchar(254)),
                ("SS_DATA_TYPE", SqlType::TinyInt),
            ],
            rows,
            answers,
        )
    }
}
