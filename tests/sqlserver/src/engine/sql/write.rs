//! `INSERT`, `UPDATE`, `DELETE`, `MERGE`.

use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::Token;

use super::parse::{Parsed, Reader};
use super::statement::{
    Act, Assignment, Delete, Insert, InsertSource, Merge, MergeAction, MergeClause, MergeWhen, Output, Update,
};

impl Reader<'_> {
    fn top(&mut self) -> Parsed<Option<Expr>> {
        if !self.word("TOP") {
            return Ok(None);
        }
        let count = if self.parser.peek_token().token == Token::LParen {
            self.parenthesized(Self::expr)?
        } else {
            self.parser.parse_prefix()?
        };
        if self.word("PERCENT") {
            return self.error("TOP without PERCENT");
        }
        Ok(Some(count))
    }

    /// `WITH (…)`, as upper-case words.
    fn hints(&mut self) -> Parsed<Vec<String>> {
        if !(self.is_word("WITH") && self.parser.peek_nth_token(1).token == Token::LParen) {
            return Ok(Vec::new());
        }
        self.parser.next_token();
        self.parenthesized(|r| r.list(|r| Ok(r.identifier()?.to_uppercase())))
    }

    fn output(&mut self) -> Parsed<Option<Output>> {
        if !self.word("OUTPUT") {
            return Ok(None);
        }
        let items = self.parser.parse_projection()?;
        let into = if self.word("INTO") {
            let name = self.name()?;
            let columns = if self.parser.peek_token().token == Token::LParen { self.columns()? } else { Vec::new() };
            Some((name, columns))
        } else {
            None
        };
        Ok(Some(Output { items, into }))
    }

    pub(super) fn columns(&mut self) -> Parsed<Vec<String>> {
        self.parenthesized(|r| {
            r.list(|r| {
                let mut name = r.identifier()?;
                while r.parser.consume_token(&Token::Period) {
                    name = r.identifier()?;
                }
                Ok(name)
            })
        })
    }

    fn value(&mut self) -> Parsed<Option<Expr>> {
        if self.word("DEFAULT") { Ok(None) } else { self.expr().map(Some) }
    }

    pub(super) fn insert(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let top = self.top()?;
        self.word("INTO");
        let table = self.name()?;
        let hints = self.hints()?;
        let is_list = self.parser.peek_token().token == Token::LParen
            && !self.is_nth_word(1, "SELECT")
            && !self.is_nth_word(1, "WITH");
        let columns = if is_list { self.columns()? } else { Vec::new() };
        let output = self.output()?;
        let source = if self.words(&["DEFAULT", "VALUES"]) {
            InsertSource::Defaults
        } else if self.word("VALUES") {
            InsertSource::Values(self.list(|r| r.parenthesized(|r| r.list(Self::value)))?)
        } else if self.word("EXEC") || self.word("EXECUTE") {
            InsertSource::Execute(Box::new(self.execute()?))
        } else {
            InsertSource::Query(self.parser.parse_query()?)
        };
        Ok(Act::Insert(Box::new(Insert { top, table, hints, columns, output, source })))
    }

    fn assignments(&mut self) -> Parsed<Vec<Assignment>> {
        self.list(|r| {
            let mut column = r.identifier()?;
            let mut left = vec![Ident::new(column.clone())];
            while r.parser.consume_token(&Token::Period) {
                column = r.identifier()?;
                left.push(Ident::new(column.clone()));
            }
            if r.parser.peek_token().token == Token::Eq && r.is_nth_word(1, "DEFAULT") {
                r.parser.next_token();
                r.parser.next_token();
                return Ok(Assignment { column, value: None });
            }
            let left = if left.len() == 1 {
                Expr::Identifier(Ident::with_quote('[', column.clone()))
            } else {
                Expr::CompoundIdentifier(left)
            };
            let left = if column.starts_with('@') { Expr::Identifier(Ident::new(column.clone())) } else { left };
            let value = Some(r.assigned(left)?);
            Ok(Assignment { column, value })
        })
    }

    pub(super) fn update(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let top = self.top()?;
        let target = self.name()?;
        let hints = self.hints()?;
        self.expect("SET")?;
        let assignments = self.assignments()?;
        let output = self.output()?;
        let from = if self.word("FROM") { self.list(|r| r.parser.parse_table_and_joins())? } else { Vec::new() };
        let filter = if self.word("WHERE") { Some(self.expr()?) } else { None };
        Ok(Act::Update(Box::new(Update { top, target, hints, assignments, output, from, filter })))
    }

    pub(super) fn delete(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        let top = self.top()?;
        self.word("FROM");
        let target = self.name()?;
        let hints = self.hints()?;
        let output = self.output()?;
        let from = if self.word("FROM") { self.list(|r| r.parser.parse_table_and_joins())? } else { Vec::new() };
        let filter = if self.word("WHERE") { Some(self.expr()?) } else { None };
        Ok(Act::Delete(Box::new(Delete { top, target, hints, output, from, filter })))
    }

    pub(super) fn merge(&mut self) -> Parsed<Act> {
        self.parser.next_token();
        self.word("INTO");
        let target = self.name()?;
        self.hints()?;
        self.word("AS");
        let alias = if self.is_word("USING") { None } else { Some(self.identifier()?) };
        self.expect("USING")?;
        let source = self.parser.parse_table_factor()?;
        self.expect("ON")?;
        let on = self.expr()?;
        let mut clauses = Vec::new();
        while self.word("WHEN") {
            let when = if self.word("MATCHED") {
                MergeWhen::Matched
            } else {
                self.expect("NOT")?;
                self.expect("MATCHED")?;
                match self.word("BY") {
                    true if self.word("SOURCE") => MergeWhen::NotMatchedBySource,
                    true => {
                        self.expect("TARGET")?;
                        MergeWhen::NotMatchedByTarget
                    }
                    false => MergeWhen::NotMatchedByTarget,
                }
            };
            let filter = if self.word("AND") { Some(self.expr()?) } else { None };
            self.expect("THEN")?;
            let action = if self.word("DELETE") {
                MergeAction::Delete
            } else if self.word("UPDATE") {
                self.expect("SET")?;
                MergeAction::Update(self.assignments()?)
            } else {
                self.expect("INSERT")?;
                let columns =
                    if self.parser.peek_token().token == Token::LParen { self.columns()? } else { Vec::new() };
                self.expect("VALUES")?;
                let values = self.parenthesized(|r| r.list(Self::value))?;
                MergeAction::Insert { columns, values }
            };
            clauses.push(MergeClause { when, filter, action });
        }
        let output = self.output()?;
        Ok(Act::Merge(Box::new(Merge { target, alias, source, on, clauses, output })))
    }
}
