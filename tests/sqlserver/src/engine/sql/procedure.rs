//! `CREATE PROCEDURE` and `ALTER PROCEDURE`.
//!
//! `READONLY` and the options after `WITH` are read and have no effect: a body runs with the rights of the caller,
//! whatever `EXECUTE AS` or chains of ownership would give it.

use std::sync::Arc;

use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{Act, Define, ProcedureParameter};

impl Reader<'_> {
    /// After the word `PROCEDURE`; the rest of the batch is the procedure's body.
    pub(super) fn procedure(&mut self, alter: bool, or_alter: bool) -> Parsed<Act> {
        let name = self.name()?;
        let parenthesized = self.parser.consume_token(&Token::LParen);
        let mut parameters = Vec::new();
        while let Some(name) = self.variable() {
            self.word("AS");
            let kind = self.type_name()?;
            self.words(&["NOT", "NULL"]);
            self.word("NULL");
            let default = if self.parser.consume_token(&Token::Eq) { Some(self.expr()?) } else { None };
            let output = self.word("OUTPUT") || self.word("OUT");
            self.word("READONLY");
            parameters.push(ProcedureParameter { name, kind, default, output });
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        if parenthesized {
            self.parser.expect_token(&Token::RParen)?;
        }
        if self.word("WITH") {
            self.list(|r| {
                let option = r.identifier()?;
                if option.eq_ignore_ascii_case("EXECUTE") {
                    r.expect("AS")?;
                    r.parser.next_token();
                }
                Ok(())
            })?;
        }
        self.expect("AS")?;
        let body = Arc::new(self.steps(&[])?);
        let text = self.text.to_owned();
        Ok(Act::Define(Box::new(Define::CreateProcedure { name, parameters, body, text, alter, or_alter })))
    }
}
