//! Statements of control, variables, sessions and transactions.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{BinaryOperator, Expr, Ident, Value, With};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{Act, Argument, Declaration, Declared, Execute, Executed, InsertSource, Name, SetOption, Step};
use crate::session::Isolation;

impl Reader<'_> {
    pub(super) fn step(&mut self) -> Parsed<Step> {
        let line = self.line();
        let act = self.act()?;
        if self.word("OPTION") {
            self.skip_parenthesized()?;
        }
        let _ = self.parser.consume_token(&Token::SemiColon);
        Ok(Step { line, act })
    }

    fn act(&mut self) -> Parsed<Act> {
        let token = self.parser.peek_token();
        let word = match &token.token {
            Token::Word(w) if w.quote_style.is_none() => w.value.to_uppercase(),
            Token::Word(_) => String::new(),
            Token::LParen => return Ok(Act::Query(self.parser.parse_query()?)),
            _ => return self.unexpected("a statement"),
        };
        match word.as_str() {
            "SELECT" => Ok(Act::Query(self.parser.parse_query()?)),
            "WITH" => self.with(),
            "INSERT" => self.insert(),
            "UPDATE" => {
                if self.is_nth_word(1, "STATISTICS") {
                    return self.ignored(2);
                }
                self.update()
            }
            "DELETE" => self.delete(),
            "MERGE" => self.merge(),
            "TRUNCATE" => {
                self.parser.next_token();
                self.expect("TABLE")?;
                Ok(Act::Truncate(self.name()?))
            }
            "CREATE" | "ALTER" | "DROP" | "GRANT" | "DENY" | "REVOKE" => self.define(),
            "DECLARE" => self.declare(),
            "SET" => self.set(),
            "IF" => self.condition(),
            "WHILE" => {
                self.parser.next_token();
                let condition = self.expr()?;
                Ok(Act::While { condition, body: Box::new(self.step()?) })
            }
            "BEGIN" => self.begin(),
            "COMMIT" => {
                self.parser.next_token();
                self.transaction_name()?;
                Ok(Act::Commit)
            }
            "ROLLBACK" => {
                self.parser.next_token();
                Ok(Act::Rollback { name: self.transaction_name()? })
            }
            "SAVE" => {
                self.parser.next_token();
                Ok(Act::Save { name: self.transaction_name()? })
            }
            "PRINT" => {
                self.parser.next_token();
                Ok(Act::Print(self.expr()?))
            }
            "RAISERROR" => self.raise(),
            "THROW" => {
                self.parser.next_token();
                if matches!(self.parser.peek_token().token, Token::SemiColon | Token::EOF) || self.is_word("END") {
                    return Ok(Act::Throw(None));
                }
                let parts = self.list(Self::expr)?;
                match <[Expr; 3]>::try_from(parts) {
                    Ok(parts) => Ok(Act::Throw(Some(parts))),
                    Err(_) => self.unexpected("number, message and state"),
                }
            }
            "BREAK" | "CONTINUE" | "CHECKPOINT" => {
                self.parser.next_token();
                Ok(match word.as_str() {
                    "BREAK" => Act::Break,
                    "CONTINUE" => Act::Continue,
                    _ => Act::Nothing,
                })
            }
            "RETURN" => {
                self.parser.next_token();
                let ends = matches!(self.parser.peek_token().token, Token::SemiColon | Token::EOF)
                    || self.is_word("END")
                    || self.is_word("ELSE");
                Ok(Act::Return(if ends { None } else { Some(self.expr()?) }))
            }
            "USE" => {
                self.parser.next_token();
                Ok(Act::Use(self.identifier()?))
            }
            "KILL" => {
                self.parser.next_token();
                Ok(Act::Kill(self.expr()?))
            }
            "WAITFOR" => {
                self.parser.next_token();
                if !self.word("DELAY") {
                    self.expect("TIME")?;
                }
                Ok(Act::WaitFor(self.expr()?))
            }
            "EXEC" | "EXECUTE" => {
                self.parser.next_token();
                Ok(Act::Execute(self.execute()?))
            }
            // Without EXEC a procedure may be called by the first statement of a batch.
            _ if self.parser.get_current_index() == 0 || word.starts_with("SP_") || word.is_empty() => {
                let name = self.name()?;
                Ok(Act::Execute(Execute { status: None, what: Executed::Procedure(name, self.arguments()?) }))
            }
            _ => self.unexpected("a statement"),
        }
    }

    /// Common table expressions before a query or an `INSERT … SELECT`, whose query gets them.
    fn with(&mut self) -> Parsed<Act> {
        let token = self.parser.next_token();
        let cte_tables = self.parser.parse_comma_separated(|p| p.parse_cte())?;
        let with = With { with_token: AttachedToken(token), recursive: false, cte_tables };
        if self.is_word("INSERT") {
            let mut act = self.insert()?;
            match &mut act {
                Act::Insert(insert) => match &mut insert.source {
                    InsertSource::Query(query) if query.with.is_none() => query.with = Some(with),
                    _ => return self.error("a query after WITH and INSERT"),
                },
                _ => return self.unexpected("INSERT"),
            }
            return Ok(act);
        }
        if !self.is_word("SELECT") && self.parser.peek_token().token != Token::LParen {
            return self.error("SELECT or INSERT after WITH");
        }
        let mut query = self.parser.parse_query()?;
        query.with = Some(with);
        Ok(Act::Query(query))
    }

    /// Takes so many words and the name that follows.
    fn ignored(&mut self, words: usize) -> Parsed<Act> {
        for _ in 0..words {
            self.parser.next_token();
        }
        self.name()?;
        Ok(Act::Nothing)
    }

    fn declare(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let declared = self.list(|r| {
            let Some(name) = r.variable() else { return r.unexpected("a variable") };
            r.word("AS");
            if r.word("TABLE") {
                let body = r.table_body()?;
                return Ok(Declared { name, what: Declaration::Table(body) });
            }
            let kind = r.type_name()?;
            let value = if r.parser.consume_token(&Token::Eq) { Some(Box::new(r.expr()?)) } else { None };
            Ok(Declared { name, what: Declaration::Scalar(kind, value) })
        })?;
        Ok(Act::Declare(declared))
    }

    fn set(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        if let Some(name) = self.variable() {
            let value = self.assigned(Expr::Identifier(Ident::new(name.clone())))?;
            return Ok(Act::Assign(name, value));
        }
        let option = if self.words(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
            let level = if self.words(&["READ", "UNCOMMITTED"]) {
                Isolation::ReadUncommitted
            } else if self.words(&["READ", "COMMITTED"]) {
                Isolation::ReadCommitted
            } else if self.words(&["REPEATABLE", "READ"]) {
                Isolation::RepeatableRead
            } else if self.word("SERIALIZABLE") {
                Isolation::Serializable
            } else if self.word("SNAPSHOT") {
                Isolation::Snapshot
            } else {
                return self.unexpected("an isolation level");
            };
            SetOption::Isolation(level)
        } else if self.word("LOCK_TIMEOUT") {
            SetOption::LockTimeout(self.expr()?)
        } else if self.word("NOCOUNT") {
            SetOption::NoCount(self.on_off()?)
        } else if self.word("XACT_ABORT") {
            SetOption::XactAbort(self.on_off()?)
        } else if self.word("IMPLICIT_TRANSACTIONS") {
            SetOption::ImplicitTransactions(self.on_off()?)
        } else if self.word("IDENTITY_INSERT") {
            let name = self.name()?;
            SetOption::IdentityInsert(name, self.on_off()?)
        } else if self.word("ROWCOUNT") {
            SetOption::RowCount(self.expr()?)
        } else if self.word("DEADLOCK_PRIORITY") {
            SetOption::DeadlockPriority(self.priority()?)
        } else {
            return self.other_option();
        };
        Ok(Act::SetOption(option))
    }

    fn priority(&mut self) -> Parsed<i32> {
        if self.word("LOW") {
            return Ok(-5);
        }
        if self.word("NORMAL") {
            return Ok(0);
        }
        if self.word("HIGH") {
            return Ok(5);
        }
        let negative = self.parser.consume_token(&Token::Minus);
        let number = self.parser.parse_literal_uint()?.min(10) as i32;
        Ok(if negative { -number } else { number })
    }

    /// Options that change nothing here, among them those that drivers send at the start: `ANSI_NULLS`,
    /// `QUOTED_IDENTIFIER`, `TEXTSIZE`, `LANGUAGE`, `DATEFORMAT`, …
    fn other_option(&mut self) -> Parsed<Act> {
        loop {
            self.identifier()?;
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        if self.word("ON") || self.word("OFF") {
            return Ok(Act::Nothing);
        }
        let _ = self.parser.consume_token(&Token::Minus);
        match self.parser.next_token().token {
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::NationalStringLiteral(_) => {
                Ok(Act::Nothing)
            }
            _ => {
                self.parser.prev_token();
                self.unexpected("ON or OFF")
            }
        }
    }

    pub(super) fn on_off(&mut self) -> Parsed<bool> {
        if self.word("ON") {
            return Ok(true);
        }
        self.expect("OFF").map(|()| false)
    }

    /// The right side of `=`, `+=` and the like, with the left side put in.
    pub(super) fn assigned(&mut self, left: Expr) -> Parsed<Expr> {
        let operator = match self.parser.peek_token().token {
            Token::Plus => Some(BinaryOperator::Plus),
            Token::Minus => Some(BinaryOperator::Minus),
            Token::Mul => Some(BinaryOperator::Multiply),
            Token::Div => Some(BinaryOperator::Divide),
            Token::Mod => Some(BinaryOperator::Modulo),
            Token::Ampersand => Some(BinaryOperator::BitwiseAnd),
            Token::Pipe => Some(BinaryOperator::BitwiseOr),
            Token::Caret => Some(BinaryOperator::BitwiseXor),
            _ => None,
        };
        if operator.is_some() {
            self.parser.next_token();
        }
        self.parser.expect_token(&Token::Eq)?;
        let right = self.expr()?;
        Ok(match operator {
            None => right,
            Some(op) => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(Expr::Nested(Box::new(right))) },
        })
    }

    fn condition(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let condition = self.expr()?;
        let then = Box::new(self.step()?);
        let otherwise = if self.word("ELSE") { Some(Box::new(self.step()?)) } else { None };
        Ok(Act::If { condition, then, otherwise })
    }

    fn begin(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        self.word("DISTRIBUTED");
        if self.is_word("TRAN") || self.is_word("TRANSACTION") {
            let name = self.transaction_name()?;
            if self.words(&["WITH", "MARK"]) {
                self.parser.next_token();
            }
            return Ok(Act::Begin { name });
        }
        if self.word("TRY") {
            let body = self.steps(&["END"])?;
            for word in ["END", "TRY", "BEGIN", "CATCH"] {
                self.expect(word)?;
                if word == "TRY" {
                    let _ = self.parser.consume_token(&Token::SemiColon);
                }
            }
            let catch = self.steps(&["END"])?;
            self.expect("END")?;
            self.expect("CATCH")?;
            return Ok(Act::Try { body, catch });
        }
        let body = self.steps(&["END"])?;
        self.expect("END")?;
        Ok(Act::Block(body))
    }

    /// `TRAN`, `TRANSACTION` or `WORK` and a name, all of which may be missing.
    fn transaction_name(&mut self) -> Parsed<String> {
        if self.word("WORK") || !(self.word("TRAN") || self.word("TRANSACTION")) {
            return Ok(String::new());
        }
        match &self.parser.peek_token().token {
            Token::Word(w) if w.quote_style.is_some() || !STATEMENTS.contains(&w.value.to_uppercase().as_str()) => {
                self.identifier()
            }
            _ => Ok(String::new()),
        }
    }

    fn raise(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let parts = self.parenthesized(|r| r.list(Self::expr))?;
        if self.word("WITH") {
            self.list(Self::identifier)?;
        }
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(message), Some(severity), Some(state)) => {
                Ok(Act::Raise { message, severity, state, arguments: parts.collect() })
            }
            _ => self.unexpected("message, severity and state"),
        }
    }

    pub(super) fn execute(&mut self) -> Parsed<Execute> {
        if self.parser.peek_token().token == Token::LParen {
            let text = self.parenthesized(Self::expr)?;
            return Ok(Execute { status: None, what: Executed::Text(Box::new(text)) });
        }
        let status = match self.variable() {
            Some(variable) => {
                self.parser.expect_token(&Token::Eq)?;
                Some(variable)
            }
            None => None,
        };
        let name: Name = self.name()?;
        Ok(Execute { status, what: Executed::Procedure(name, self.arguments()?) })
    }

    fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        let token = self.parser.peek_token();
        match &token.token {
            Token::SemiColon | Token::EOF => return Ok(Vec::new()),
            Token::Word(w) if w.quote_style.is_none() && STATEMENTS.contains(&w.value.to_uppercase().as_str()) => {
                return Ok(Vec::new());
            }
            _ => {}
        }
        self.list(|r| {
            let name = match (&r.parser.peek_token().token, r.parser.peek_nth_token(1).token) {
                (Token::Word(w), Token::Eq) if w.value.starts_with('@') => {
                    let name = w.value.clone();
                    r.parser.next_token();
                    r.parser.next_token();
                    Some(name)
                }
                _ => None,
            };
            let value = if r.word("DEFAULT") { None } else { Some(r.argument()?) };
            let output = r.word("OUTPUT") || r.word("OUT");
            Ok(Argument { name, value, output })
        })
    }

    /// A constant, a variable, or a word that means itself.
    fn argument(&mut self) -> Parsed<Expr> {
        let token = self.parser.peek_token();
        if let Token::Word(w) = &token.token
            && !w.value.starts_with('@')
            && !w.value.eq_ignore_ascii_case("null")
            && self.parser.peek_nth_token(1).token != Token::LParen
        {
            self.parser.next_token();
            return Ok(Expr::Value(Value::NationalStringLiteral(w.value.clone()).with_empty_span()));
        }
        self.expr()
    }
}

impl Reader<'_> {
    pub(super) fn error<T>(&self, text: &str) -> Parsed<T> {
        Err(ParserError::ParserError(format!("{text}, found: {}", self.parser.peek_token())))
    }
}

/// Words with which the next statement may begin.
const STATEMENTS: &[&str] = &[
    "ALTER",
    "BEGIN",
    "BREAK",
    "COMMIT",
    "CONTINUE",
    "CREATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DROP",
    "ELSE",
    "END",
    "EXEC",
    "EXECUTE",
    "GRANT",
    "IF",
    "INSERT",
    "KILL",
    "MERGE",
    "PRINT",
    "RAISERROR",
    "RETURN",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SELECT",
    "SET",
    "THROW",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "WAITFOR",
    "WHILE",
    "WITH",
];
