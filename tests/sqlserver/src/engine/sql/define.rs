//! Statements that change the catalogue.

use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{Act, DatabaseSetting, Define, Name, PermissionKind, Securable, TableBody};

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
