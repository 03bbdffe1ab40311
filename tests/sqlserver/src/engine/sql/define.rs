//! Statements that change the catalogue.

use sqlparser::ast::Expr;
use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{
    Act, ColumnSpec, ConstraintKind, ConstraintSpec, DatabaseSetting, Define, IndexSpec, Name, PermissionKind,
    Referential, Securable, TableBody,
};

impl Reader<'_> {
    pub(super) fn define(&mut self) -> Parsed<Act> {
        if self.word("CREATE") {
            return self.create();
        }
        if self.word("ALTER") {
            return self.alter();
        }
        if self.word("DROP") {
            return self.drop();
        }
        self.permission()
    }

    fn create(&mut self) -> Parsed<Act> {
        let or_alter = self.words(&["OR", "ALTER"]);
        if self.word("TABLE") {
            let name = self.name()?;
            let body = self.table_body()?;
            return Ok(defined(Define::CreateTable { name, body }));
        }
        if self.word("SCHEMA") {
            let name = self.identifier()?;
            if self.word("AUTHORIZATION") {
                self.identifier()?;
            }
            return Ok(defined(Define::CreateSchema(name)));
        }
        if self.word("DATABASE") {
            let name = self.identifier()?;
            let collation = if self.word("COLLATE") { Some(self.identifier()?) } else { None };
            return Ok(defined(Define::CreateDatabase { name, collation }));
        }
        if self.word("TYPE") {
            let name = self.name()?;
            self.expect("FROM")?;
            let base = self.type_name()?;
            let nullable = !self.words(&["NOT", "NULL"]);
            self.word("NULL");
            return Ok(defined(Define::CreateType { name, base, nullable }));
        }
        if self.word("VIEW") {
            return self.view(or_alter);
        }
        if self.word("PROCEDURE") || self.word("PROC") {
            return self.procedure(false, or_alter);
        }
        if self.word("LOGIN") {
            let name = self.identifier()?;
            self.expect("WITH")?;
            self.expect("PASSWORD")?;
            self.parser.expect_token(&Token::Eq)?;
            let password = match self.parser.next_token().token {
                Token::SingleQuotedString(p) | Token::NationalStringLiteral(p) => p,
                _ => return self.unexpected("a password"),
            };
            while self.parser.consume_token(&Token::Comma) {
                self.identifier()?;
                self.parser.expect_token(&Token::Eq)?;
                self.parser.next_token();
            }
            return Ok(defined(Define::CreateLogin { name, password }));
        }
        if self.word("USER") {
            let name = self.identifier()?;
            let login = if self.words(&["FOR", "LOGIN"]) || self.words(&["FROM", "LOGIN"]) {
                Some(self.identifier()?)
            } else if self.words(&["WITHOUT", "LOGIN"]) {
                None
            } else {
                Some(name.clone())
            };
            return Ok(defined(Define::CreateUser { name, login }));
        }
        let unique = self.word("UNIQUE");
        let clustered = self.word("CLUSTERED");
        self.word("NONCLUSTERED");
        self.expect("INDEX")?;
        let name = self.identifier()?;
        self.expect("ON")?;
        let table = self.name()?;
        let index = Box::new(self.index_body(name, unique, clustered)?);
        Ok(defined(Define::CreateIndex { table, index }))
    }

    fn view(&mut self, or_alter: bool) -> Parsed<Act> {
        let name = self.name()?;
        let columns = if self.parser.peek_token().token == Token::LParen { self.columns()? } else { Vec::new() };
        if self.word("WITH") {
            self.list(Self::identifier)?;
        }
        self.expect("AS")?;
        let query = self.parser.parse_query()?;
        self.words(&["WITH", "CHECK", "OPTION"]);
        let text = self.text.to_owned();
        Ok(defined(Define::CreateView { name, columns, query, text, or_alter }))
    }

    fn index_body(&mut self, name: String, unique: bool, clustered: bool) -> Parsed<IndexSpec> {
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
    fn index_options(&mut self) -> Parsed<()> {
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
    fn versioning(&mut self) -> Parsed<Option<(bool, Option<Name>)>> {
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

    fn element(&mut self, body: &mut TableBody) -> Parsed<()> {
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

    fn column(&mut self, constraints: &mut Vec<ConstraintSpec>) -> Parsed<ColumnSpec> {
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

    fn alter(&mut self) -> Parsed<Act> {
        if self.word("DATABASE") {
            return self.alter_database();
        }
        if self.word("ROLE") {
            let role = self.identifier()?;
            let add = self.word("ADD");
            if !add {
                self.expect("DROP")?;
            }
            self.expect("MEMBER")?;
            let member = self.identifier()?;
            return Ok(defined(Define::Role { role, member, add }));
        }
        if self.word("VIEW") {
            return self.view(true);
        }
        if self.word("PROCEDURE") || self.word("PROC") {
            return self.procedure(true, false);
        }
        if self.word("AUTHORIZATION") {
            self.expect("ON")?;
            while !self.is_word("TO") && self.parser.peek_token().token != Token::EOF {
                self.parser.next_token();
            }
            self.expect("TO")?;
            self.identifier()?;
            return Ok(Act::Nothing);
        }
        self.expect("TABLE")?;
        let table = self.name()?;
        if self.word("SET") {
            return Ok(match self.versioning()? {
                Some((on, history)) => defined(Define::SystemVersioning { table, history, on }),
                None => Act::Nothing,
            });
        }
        self.words(&["WITH", "CHECK"]);
        self.words(&["WITH", "NOCHECK"]);
        if self.word("ADD") {
            let mut body = TableBody::default();
            loop {
                self.element(&mut body)?;
                if !self.parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            return Ok(defined(Define::AddToTable { table, body }));
        }
        if self.words(&["ALTER", "COLUMN"]) {
            let column = Box::new(self.column(&mut Vec::new())?);
            return Ok(defined(Define::AlterColumn { table, column }));
        }
        if self.word("DROP") {
            return self.drop_from(table);
        }
        // CHECK, NOCHECK, ENABLE, DISABLE, REBUILD: nothing is kept of them.
        for word in ["CHECK", "NOCHECK"] {
            if self.word(word) {
                self.expect("CONSTRAINT")?;
                self.identifier()?;
                return Ok(Act::Nothing);
            }
        }
        if self.word("REBUILD") {
            self.index_options()?;
            return Ok(Act::Nothing);
        }
        self.unexpected("ADD, ALTER COLUMN, DROP or SET")
    }

    fn drop_from(&mut self, table: Name) -> Parsed<Act> {
        let (mut constraints, mut columns, mut if_exists) = (Vec::new(), Vec::new(), false);
        if self.words(&["PERIOD", "FOR", "SYSTEM_TIME"]) {
            return Ok(Act::Nothing);
        }
        let mut is_column = false;
        loop {
            if self.word("COLUMN") {
                is_column = true;
            } else if self.word("CONSTRAINT") {
                is_column = false;
            }
            if_exists |= self.words(&["IF", "EXISTS"]);
            let name = self.identifier()?;
            if is_column {
                columns.push(name)
            } else {
                constraints.push(name)
            }
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        Ok(defined(Define::DropFromTable { table, constraints, columns, if_exists }))
    }

    fn alter_database(&mut self) -> Parsed<Act> {
        let name = if self.word("CURRENT") { None } else { Some(self.identifier()?) };
        if self.words(&["MODIFY", "NAME"]) {
            self.parser.expect_token(&Token::Eq)?;
            let setting = DatabaseSetting::Rename(self.identifier()?);
            return Ok(defined(Define::AlterDatabase { name, setting }));
        }
        if self.word("COLLATE") {
            self.identifier()?;
            return Ok(defined(Define::AlterDatabase { name, setting: DatabaseSetting::Other }));
        }
        self.expect("SET")?;
        let setting = if self.word("ALLOW_SNAPSHOT_ISOLATION") {
            DatabaseSetting::AllowSnapshot(self.on_off()?)
        } else if self.word("READ_COMMITTED_SNAPSHOT") {
            DatabaseSetting::ReadCommittedSnapshot(self.on_off()?)
        } else if self.word("OFFLINE") {
            DatabaseSetting::Online(false)
        } else if self.word("ONLINE") {
            DatabaseSetting::Online(true)
        } else {
            self.identifier()?;
            let _ = self.parser.consume_token(&Token::Eq);
            if self.parser.peek_token().token == Token::LParen {
                self.skip_parenthesized()?;
            } else if matches!(self.parser.peek_token().token, Token::Word(_) | Token::Number(..))
                && !self.is_word("WITH")
            {
                self.parser.next_token();
            }
            DatabaseSetting::Other
        };
        if self.word("WITH") {
            self.expect("ROLLBACK")?;
            if !self.word("IMMEDIATE") {
                self.expect("AFTER")?;
                self.parser.parse_literal_uint()?;
                self.word("SECONDS");
            }
        }
        Ok(defined(Define::AlterDatabase { name, setting }))
    }

    fn drop(&mut self) -> Parsed<Act> {
        let kind = self.identifier()?.to_uppercase();
        let if_exists = self.words(&["IF", "EXISTS"]);
        Ok(defined(match kind.as_str() {
            "TABLE" => Define::DropTable { names: self.list(Self::name)?, if_exists },
            "VIEW" => Define::DropView { names: self.list(Self::name)?, if_exists },
            "PROCEDURE" | "PROC" => Define::DropProcedure { names: self.list(Self::name)?, if_exists },
            "SCHEMA" => Define::DropSchema { name: self.identifier()?, if_exists },
            "DATABASE" => Define::DropDatabase { names: self.list(Self::identifier)?, if_exists },
            "TYPE" => Define::DropType(self.name()?),
            "LOGIN" => Define::DropLogin(self.identifier()?),
            "USER" => Define::DropUser(self.identifier()?),
            "INDEX" => {
                let name = self.identifier()?;
                self.expect("ON")?;
                Define::DropIndex { name, table: self.name()?, if_exists }
            }
            _ => return self.unexpected("TABLE, VIEW, PROCEDURE, INDEX, SCHEMA, DATABASE, TYPE, LOGIN or USER"),
        }))
    }

    fn permission(&mut self) -> Parsed<Act> {
        let kind = if self.word("GRANT") {
            PermissionKind::Grant
        } else if self.word("DENY") {
            PermissionKind::Deny
        } else {
            self.expect("REVOKE")?;
            PermissionKind::Revoke
        };
        let permissions = self.list(|r| {
            let mut words = Vec::new();
            while !r.is_word("ON") && !r.is_word("TO") && !r.is_word("FROM") {
                match r.parser.peek_token().token {
                    Token::Word(w) => words.push(w.value.to_uppercase()),
                    _ => break,
                }
                r.parser.next_token();
            }
            Ok(words.join(" "))
        })?;
        let on = if !self.word("ON") {
            Securable::Database
        } else if self.is_word("SCHEMA") && self.parser.peek_nth_token(1).token == Token::DoubleColon {
            self.parser.next_token();
            self.parser.next_token();
            Securable::Schema(self.identifier()?)
        } else {
            if self.parser.peek_nth_token(1).token == Token::DoubleColon {
                self.parser.next_token();
                self.parser.next_token();
            }
            Securable::Object(self.name()?)
        };
        if !self.word("TO") {
            self.expect("FROM")?;
        }
        let to = self.list(Self::identifier)?;
        self.words(&["WITH", "GRANT", "OPTION"]);
        self.word("CASCADE");
        Ok(defined(Define::Permission { kind, permissions, on, to }))
    }
}

fn defined(define: Define) -> Act {
    Act::Define(Box::new(define))
}
