//! From a batch's text to its steps: tokens, names, types, and what other files of this folder share.

use sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::dialect::Tsql;
use super::statement::{Name, Step, TypeName};
use crate::engine::fault::SqlError;

/// Nesting of expressions and queries.
const DEPTH: usize = 100;

pub(super) type Parsed<T> = Result<T, ParserError>;

/// Reads a batch. Errors (102, 156, 105) are those of the first place that cannot be read; then nothing of
/// the batch runs, as with the real server.
pub(crate) fn batch(text: &str) -> Result<Vec<Step>, (SqlError, u32)> {
    let dialect = Tsql::default();
    let tokens = tokens(&dialect, text)?;
    let mut reader = Reader { parser: parser(&dialect, tokens), text };
    let steps = reader.steps(&[]).map_err(|e| fault(&e))?;
    match reader.parser.peek_token().token {
        Token::EOF => Ok(steps),
        other => Err((near(&other.to_string()), reader.line())),
    }
}

/// An expression alone: a kept definition, an argument.
pub(crate) fn expression(text: &str) -> Result<Expr, SqlError> {
    let dialect = Tsql::default();
    let tokens = tokens(&dialect, text).map_err(|e| e.0)?;
    parser(&dialect, tokens).parse_expr().map_err(|e| fault(&e).0)
}

/// A query alone.
pub(crate) fn query(text: &str) -> Result<Box<Query>, SqlError> {
    let dialect = Tsql::default();
    let tokens = tokens(&dialect, text).map_err(|e| e.0)?;
    parser(&dialect, tokens).parse_query().map_err(|e| fault(&e).0)
}

fn parser(dialect: &Tsql, tokens: Vec<TokenWithSpan>) -> Parser<'_> {
    Parser::new(dialect).with_recursion_limit(DEPTH).with_tokens_with_locations(tokens)
}

fn tokens(dialect: &Tsql, text: &str) -> Result<Vec<TokenWithSpan>, (SqlError, u32)> {
    let tokens = Tokenizer::new(dialect, text).tokenize_with_location().map_err(|e| {
        let error = if e.message.starts_with("Unterminated string") {
            SqlError::new(105, "Unclosed quotation mark after the character string.").class(15)
        } else {
            SqlError::new(102, format!("Incorrect syntax: {}.", e.message)).class(15)
        };
        (error, e.location.line as u32)
    })?;
    let tokens = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    Ok(without_cultures(tokens))
}

/// `PARSE(x AS t USING 'culture')` reads like `CAST`, which with the language us_english gives the same
/// values; the culture is left out.
fn without_cultures(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut next = 0;
    while next + 1 < tokens.len() {
        let at = next;
        next += 1;
        let Token::Word(word) = &tokens[at].token else { continue };
        let (name, keyword) = match word.value.to_uppercase().as_str() {
            "PARSE" => ("CAST", Keyword::CAST),
            "TRY_PARSE" => ("TRY_CAST", Keyword::TRY_CAST),
            _ => continue,
        };
        if word.quote_style.is_some() || tokens[at + 1].token != Token::LParen {
            continue;
        }
        tokens[at].token = Token::Word(Word { value: name.into(), quote_style: None, keyword });
        let mut depth = 0;
        for end in at + 1..tokens.len() {
            match &tokens[end].token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::Word(w) if depth == 1 && w.keyword == Keyword::USING => {
                    let count = if end + 1 < tokens.len() { 2 } else { 1 };
                    tokens.drain(end..end + count);
                    break;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    tokens
}

/// The server's error for what the parser says, and the line.
pub(super) fn fault(error: &ParserError) -> (SqlError, u32) {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => {
            let text = "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.";
            return (SqlError::new(191, text).class(15), 1);
        }
    };
    let line = text.rsplit_once("Line: ").and_then(|(_, rest)| rest.split(',').next()?.parse().ok()).unwrap_or(1);
    let found = text.rsplit_once("found: ").map(|(_, rest)| rest.split(" at Line: ").next().unwrap_or(rest));
    match found {
        Some("EOF") | None => (SqlError::near(""), line),
        Some(token) => (near(token.trim_matches(['[', ']', '\''])), line),
    }
}

fn near(token: &str) -> SqlError {
    let reserved = [
        "SELECT", "FROM", "WHERE", "INSERT", "UPDATE", "DELETE", "SET", "VALUES", "ORDER", "GROUP", "BY", "HAVING",
        "INTO", "TABLE", "CREATE", "ALTER", "DROP", "AND", "OR", "NOT", "NULL", "AS", "ON", "JOIN", "IN", "IS", "LIKE",
        "EXEC", "EXECUTE", "BEGIN", "END", "IF", "ELSE", "WHILE", "WITH", "UNION", "CASE", "WHEN", "THEN", "TOP",
        "DISTINCT", "KEY", "PRIMARY", "DEFAULT", "DATABASE", "INDEX",
    ];
    if reserved.iter().any(|r| r.eq_ignore_ascii_case(token)) {
        return SqlError::new(156, format!("Incorrect syntax near the keyword '{}'.", token.to_uppercase())).class(15);
    }
    SqlError::near(token)
}

/// Reads the tokens of one batch.
pub(super) struct Reader<'a> {
    pub(super) parser: Parser<'a>,
    /// The batch, for definitions that are kept as they were written.
    pub(super) text: &'a str,
}

impl Reader<'_> {
    /// Steps up to the end or to one of the words, which is left.
    pub(super) fn steps(&mut self, until: &[&str]) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            while self.parser.consume_token(&Token::SemiColon) {}
            if self.parser.peek_token().token == Token::EOF || until.iter().any(|w| self.is_word(w)) {
                return Ok(steps);
            }
            steps.push(self.step()?);
        }
    }

    pub(super) fn line(&self) -> u32 {
        self.parser.peek_token().span.start.line as u32
    }

    /// Whether the next token is this word, without quotes.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.is_nth_word(0, word)
    }

    pub(super) fn is_nth_word(&self, n: usize, word: &str) -> bool {
        matches!(&self.parser.peek_nth_token(n).token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    /// Takes the word if it is next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.parser.next_token();
        }
        is
    }

    /// Takes all the words if they are next.
    pub(super) fn words(&mut self, words: &[&str]) -> bool {
        let all = words.iter().enumerate().all(|(n, w)| self.is_nth_word(n, w));
        if all {
            for _ in words {
                self.parser.next_token();
            }
        }
        all
    }

    pub(super) fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.word(word) { Ok(()) } else { self.unexpected(word) }
    }

    pub(super) fn unexpected<T>(&self, wanted: &str) -> Parsed<T> {
        self.parser.expected(wanted, self.parser.peek_token())
    }

    pub(super) fn identifier(&mut self) -> Parsed<String> {
        Ok(self.parser.parse_identifier()?.value)
    }

    /// `@x`; `None`: something else is next.
    pub(super) fn variable(&mut self) -> Option<String> {
        match &self.parser.peek_token().token {
            Token::Word(w) if w.quote_style.is_none() && w.value.starts_with('@') => {
                self.parser.next_token();
                Some(w.value.clone())
            }
            _ => None,
        }
    }

    pub(super) fn name(&mut self) -> Parsed<Name> {
        let name = self.parser.parse_object_name(false)?;
        name_of(&name).ok_or_else(|| ParserError::ParserError(format!("Expected: a name, found: {name}")))
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.parser.parse_expr()
    }

    pub(super) fn parenthesized<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.parser.expect_token(&Token::LParen)?;
        let read = read(self)?;
        self.parser.expect_token(&Token::RParen)?;
        Ok(read)
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = vec![read(self)?];
        while self.parser.consume_token(&Token::Comma) {
            all.push(read(self)?);
        }
        Ok(all)
    }

    /// Takes everything up to the parenthesis that closes the next one.
    pub(super) fn skip_parenthesized(&mut self) -> Parsed<()> {
        self.parser.expect_token(&Token::LParen)?;
        let mut depth = 1;
        while depth > 0 {
            match self.parser.next_token().token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return self.unexpected(")"),
                _ => {}
            }
        }
        Ok(())
    }

    /// A type's name: `nvarchar(max)`, `decimal(10, 2)`, `dbo.alias`, `double precision`.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let mut name = self.name()?;
        if name.schema.as_deref() == Some("sys") {
            name.schema = None;
        }
        if name.schema.is_none() {
            for (first, second) in
                [("double", "precision"), ("character", "varying"), ("char", "varying"), ("binary", "varying")]
            {
                if name.object.eq_ignore_ascii_case(first) && self.word(second) {
                    name.object = format!("{first} {second}");
                }
            }
            if name.object.eq_ignore_ascii_case("national") {
                name.object = format!("national {}", self.identifier()?);
                if self.word("varying") {
                    name.object.push_str(" varying");
                }
            }
        }
        let mut sizes = Vec::new();
        if self.parser.peek_token().token == Token::LParen {
            sizes = self.parenthesized(|r| {
                r.list(|r| {
                    if r.word("max") {
                        Ok(None)
                    } else {
                        Ok(Some(r.parser.parse_literal_uint()?.min(u32::MAX.into()) as u32))
                    }
                })
            })?;
        }
        Ok(TypeName { name, sizes })
    }
}

/// Of at most three parts; a server's name in front makes it `None`.
pub(crate) fn name_of(name: &ObjectName) -> Option<Name> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let some = |i: &Ident| (!i.value.is_empty()).then(|| i.value.clone());
    match parts[..] {
        [object] => Some(Name { database: None, schema: None, object: object.value.clone() }),
        [schema, object] => Some(Name { database: None, schema: some(schema), object: object.value.clone() }),
        [database, schema, object] => {
            Some(Name { database: some(database), schema: some(schema), object: object.value.clone() })
        }
        _ => None,
    }
}
