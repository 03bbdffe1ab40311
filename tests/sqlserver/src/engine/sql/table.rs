//! What `CREATE TABLE` and its like say of columns, keys and constraints.

use sqlparser::ast::Expr;
use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{ColumnSpec, ConstraintKind, ConstraintSpec, IndexSpec, Name, Referential, TableBody};

impl Reader<'_> {
    pub(super) fn index_body(&mut self, name: String, unique: bool, clustered: bool) -> Parsed<IndexSpec> {
        let columns = self.key_columns()?;
        let include = if self.word("INCLUDE") { self.columns()? } else { Vec::new() };
        let filter = if self.word("WHERE") { Some(self.expr()?) } else { None };
        self.index_options()?;
        Ok(IndexSpec { name, unique, clustered, columns, include, filter })
    }

    fn key_columns(&mut self) -> Parsed<Vec<(String, bool)>> {
        self.parenthesized(|r| {
            r.list(|r| {
                let name = r.identifier()?;
                let descending = r.word("DESC");
                r.word("ASC");
                Ok((name, descending))
            })
        })
    }

    /// `WITH (FILLFACTOR = …)` and `ON filegroup`, which change nothing here.
    pub(super) fn index_options(&mut self) -> Parsed<()> {
        if self.is_word("WITH") && self.parser.peek_nth_token(1).token == Token::LParen {
            self.parser.next_token();
            self.skip_parenthesized()?;
        }
        if self.word("ON") {
            self.identifier()?;
            if self.parser.peek_token().token == Token::LParen {
                self.skip_parenthesized()?;
            }
        }
        Ok(())
    }

    pub(super) fn table_body(&mut self) -> Parsed<TableBody> {
        let mut body = TableBody::default();
        self.parser.expect_token(&Token::LParen)?;
        loop {
            self.element(&mut body)?;
            if !self.parser.consume_token(&Token::Comma) || self.parser.peek_token().token == Token::RParen {
                break;
            }
        }
        self.parser.expect_token(&Token::RParen)?;
        if self.word("ON") || self.word("TEXTIMAGE_ON") {
            self.identifier()?;
        }
        if self.is_word("WITH") && self.parser.peek_nth_token(1).token == Token::LParen {
            self.parser.next_token();
            body.versioned = self.versioning()?.and_then(|(on, history)| on.then_some(history));
        }
        Ok(body)
    }

    /// `(SYSTEM_VERSIONING = ON (HISTORY_TABLE = …))`, or other options.
    pub(super) fn versioning(&mut self) -> Parsed<Option<(bool, Option<Name>)>> {
        if !self.is_nth_word(1, "SYSTEM_VERSIONING") {
            self.skip_parenthesized()?;
            return Ok(None);
        }
        self.parenthesized(|r| {
            r.parser.next_token();
            r.parser.expect_token(&Token::Eq)?;
            let on = r.on_off()?;
            let mut history = None;
            if r.parser.consume_token(&Token::LParen) {
                loop {
                    let option = r.identifier()?;
                    r.parser.expect_token(&Token::Eq)?;
                    if option.eq_ignore_ascii_case("HISTORY_TABLE") {
                        history = Some(r.name()?);
                    } else {
                        r.parser.next_token();
                    }
                    if !r.parser.consume_token(&Token::Comma) {
                        break;
                    }
                }
                r.parser.expect_token(&Token::RParen)?;
            }
            Ok(Some((on, history)))
        })
    }

    pub(super) fn element(&mut self, body: &mut TableBody) -> Parsed<()> {
        if self.words(&["PERIOD", "FOR", "SYSTEM_TIME"]) {
            let mut columns = self.columns()?.into_iter();
            body.period = columns.next().zip(columns.next());
            return Ok(());
        }
        if self.is_word("INDEX") {
            self.parser.next_token();
            let name = self.identifier()?;
            let unique = self.word("UNIQUE");
            let clustered = self.word("CLUSTERED");
            self.word("NONCLUSTERED");
            body.indexes.push(self.index_body(name, unique, clustered)?);
            return Ok(());
        }
        let name = if self.word("CONSTRAINT") { Some(self.identifier()?) } else { None };
        if let Some(what) = self.constraint(None)? {
            body.constraints.push(ConstraintSpec { name, what });
            return Ok(());
        }
        if name.is_some() {
            return self.unexpected("a constraint");
        }
        let column = self.column(&mut body.constraints)?;
        body.columns.push(column);
        Ok(())
    }

    /// A constraint of a table, or of the column that is given. `None`: no constraint is next.
    fn constraint(&mut self, column: Option<&str>) -> Parsed<Option<ConstraintKind>> {
        let key = |r: &mut Self, primary: bool| {
            let clustered = if r.word("CLUSTERED") {
                Some(true)
            } else if r.word("NONCLUSTERED") {
                Some(false)
            } else {
                None
            };
            let columns = match column {
                Some(column) => vec![(column.to_owned(), false)],
                None => r.key_columns()?,
            };
            r.index_options()?;
            Ok(Some(ConstraintKind::Key { primary, clustered, columns }))
        };
        if self.words(&["PRIMARY", "KEY"]) {
            return key(self, true);
        }
        if self.word("UNIQUE") {
            return key(self, false);
        }
        if self.word("CHECK") {
            self.words(&["NOT", "FOR", "REPLICATION"]);
            return self.parenthesized(Self::expr).map(|e| Some(ConstraintKind::Check(e)));
        }
        if self.words(&["FOREIGN", "KEY"]) || column.is_some() && self.is_word("REFERENCES") {
            let columns = match column {
                Some(column) if self.is_word("REFERENCES") => vec![column.to_owned()],
                _ => self.columns()?,
            };
            self.expect("REFERENCES")?;
            let table = self.name()?;
            let referred = if self.parser.peek_token().token == Token::LParen { self.columns()? } else { Vec::new() };
            let mut on_delete = Referential::Refuse;
            while self.word("ON") {
                let delete = self.word("DELETE");
                if !delete {
                    self.expect("UPDATE")?;
                }
                let action = if self.word("CASCADE") {
                    Referential::Cascade
                } else if self.words(&["SET", "NULL"]) {
                    Referential::SetNull
                } else {
                    self.expect("NO")?;
                    self.expect("ACTION")?;
                    Referential::Refuse
                };
                if delete {
                    on_delete = action;
                }
            }
            return Ok(Some(ConstraintKind::Foreign { columns, table, referred, on_delete }));
        }
        if column.is_none() && self.word("DEFAULT") {
            let value = self.expr()?;
            self.expect("FOR")?;
            let column = self.identifier()?;
            self.words(&["WITH", "VALUES"]);
            return Ok(Some(ConstraintKind::Default(value, column)));
        }
        Ok(None)
    }

    pub(super) fn column(&mut self, constraints: &mut Vec<ConstraintSpec>) -> Parsed<ColumnSpec> {
        let name = self.identifier()?;
        let mut column = ColumnSpec {
            name,
            kind: None,
            computed: None,
            nullable: None,
            identity: None,
            default: None,
            collation: None,
            rowguid: false,
            sparse: false,
            hidden: false,
            generated: 0,
        };
        if self.word("AS") {
            let expr = self.expr()?;
            column.computed = Some((expr, self.word("PERSISTED")));
        } else {
            column.kind = Some(self.type_name()?);
        }
        loop {
            let constraint = if self.word("CONSTRAINT") { Some(self.identifier()?) } else { None };
            if self.words(&["NOT", "NULL"]) {
                column.nullable = Some(false);
            } else if self.word("NULL") {
                column.nullable = Some(true);
            } else if self.word("IDENTITY") {
                column.identity = Some(self.identity()?);
                self.words(&["NOT", "FOR", "REPLICATION"]);
            } else if self.word("DEFAULT") {
                column.default = Some((constraint, self.default_value()?));
                self.words(&["WITH", "VALUES"]);
            } else if self.word("COLLATE") {
                column.collation = Some(self.identifier()?);
            } else if self.word("ROWGUIDCOL") {
                column.rowguid = true;
            } else if self.word("SPARSE") {
                column.sparse = true;
            } else if self.word("HIDDEN") {
                column.hidden = true;
            } else if self.words(&["GENERATED", "ALWAYS", "AS", "ROW"]) {
                column.generated = if self.word("START") { 1 } else { 2 };
                self.word("END");
                column.hidden |= self.word("HIDDEN");
            } else {
                let owner = column.name.clone();
                match self.constraint(Some(&owner))? {
                    Some(what) => constraints.push(ConstraintSpec { name: constraint, what }),
                    None if constraint.is_some() => return self.unexpected("a constraint"),
                    None => return Ok(column),
                }
            }
        }
    }

    /// Not a whole expression: `DEFAULT 1 NOT NULL` and `DEFAULT 1 CHECK (…)` go on with the column.
    fn default_value(&mut self) -> Parsed<Expr> {
        // The precedence of comparisons: only arithmetic, which binds stronger, belongs to the value.
        self.parser.parse_subexpr(20)
    }

    fn identity(&mut self) -> Parsed<(i64, i64)> {
        if self.parser.peek_token().token != Token::LParen {
            return Ok((1, 1));
        }
        self.parenthesized(|r| {
            let numbers = r.list(|r| {
                let negative = r.parser.consume_token(&Token::Minus);
                let number = r.parser.parse_literal_uint()?.min(i64::MAX as u64) as i64;
                Ok(if negative { -number } else { number })
            })?;
            match numbers[..] {
                [seed, increment] => Ok((seed, increment)),
                _ => r.unexpected("seed and increment"),
            }
        })
    }
}
