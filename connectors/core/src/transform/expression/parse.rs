//! The tree of an expression, from its text.

use std::fmt;

use fancy_regex::Regex;

/// Nesting that is followed.
const MAX_DEPTH: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transform) enum Variable {
    Key,
    Value,
    KeySchema,
    ValueSchema,
    Topic,
    Headers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transform) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    And,
    Or,
    Add,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transform) enum Function {
    Size,
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Debug)]
pub(in crate::transform) enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Box<str>),
    List(Vec<Expression>),
    Variable(Variable),
    Field(Box<Expression>, Box<str>),
    Index(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Choice(Box<Expression>, Box<Expression>, Box<Expression>),
    /// The field, whether it is there and no null.
    Has(Box<Expression>),
    Call(Function, Box<Expression>, Option<Box<Expression>>),
    /// Whether an expression is found in a text.
    Matches(Box<Expression>, Box<Regex>),
}

impl Expression {
    /// # Errors
    /// What is wrong and where, as the text for an option's message.
    pub(in crate::transform) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let expression = reader.choice()?;
        reader.blanks();
        if reader.at < text.len() {
            return Err(reader.fault("unexpected text behind the expression"));
        }
        Ok(expression)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expression, String>;

impl<'a> Reader<'a> {
    fn fault(&self, what: impl fmt::Display) -> String {
        format!("{what} at offset {}", self.at)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes `sign` if it comes next.
    fn take(&mut self, sign: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) { Ok(()) } else { Err(self.fault(format_args!("'{sign}' is expected"))) }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            return Err(self.fault("the expression is nested too deeply"));
        }
        self.depth += 1;
        let parsed = read(self);
        self.depth -= 1;
        parsed
    }

    fn choice(&mut self) -> Parsed {
        let condition = self.nested(Self::or)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.nested(Self::choice)?;
        self.expect(":")?;
        let no = self.nested(Self::choice)?;
        Ok(Expression::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.take("||") {
            left = binary(Operator::Or, left, self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.relation()?;
        while self.take("&&") {
            left = binary(Operator::And, left, self.relation()?);
        }
        Ok(left)
    }

    fn relation(&mut self) -> Parsed {
        const SIGNS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let mut left = self.sum()?;
        loop {
            let operator = match SIGNS.iter().find(|(sign, _)| self.take(sign)) {
                Some((_, operator)) => *operator,
                None if self.word_is("in") => Operator::In,
                None => return Ok(left),
            };
            left = binary(operator, left, self.sum()?);
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.unary()?;
        while self.take("+") {
            left = binary(Operator::Add, left, self.unary()?);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        self.blanks();
        if self.rest().starts_with('!') && !self.rest().starts_with("!=") {
            self.at += 1;
            return Ok(Expression::Not(Box::new(self.nested(Self::unary)?)));
        }
        if self.take("-") {
            return Ok(match self.nested(Self::unary)? {
                Expression::Int(n) => Expression::Int(n.wrapping_neg()),
                Expression::Double(n) => Expression::Double(-n),
                other => Expression::Negative(Box::new(other)),
            });
        }
        self.member()
    }

    fn member(&mut self) -> Parsed {
        let mut left = self.primary()?;
        loop {
            if self.take(".") {
                let Some(name) = self.name() else { return Err(self.fault("the name of a field is expected")) };
                left = if self.take("(") {
                    self.method(name, left)?
                } else {
                    Expression::Field(Box::new(left), name.into())
                };
            } else if self.take("[") {
                let index = self.nested(Self::choice)?;
                self.expect("]")?;
                left = Expression::Index(Box::new(left), Box::new(index));
            } else {
                return Ok(left);
            }
        }
    }

    /// Behind the opening parenthesis.
    fn method(&mut self, name: &str, object: Expression) -> Parsed {
        let function = match name {
            "size" => {
                self.expect(")")?;
                return Ok(Expression::Call(Function::Size, Box::new(object), None));
            }
            "startsWith" => Function::StartsWith,
            "endsWith" => Function::EndsWith,
            "contains" => Function::Contains,
            "matches" => {
                let pattern = self.nested(Self::choice)?;
                self.expect(")")?;
                let Expression::Text(pattern) = pattern else {
                    return Err(self.fault("the expression of matches must be a text in quotes"));
                };
                let regex =
                    Regex::new(&pattern).map_err(|error| self.fault(format_args!("Invalid regex: {error};")))?;
                return Ok(Expression::Matches(Box::new(object), Box::new(regex)));
            }
            _ => return Err(self.fault(format_args!("the function {name} is not known"))),
        };
        let argument = self.nested(Self::choice)?;
        self.expect(")")?;
        Ok(Expression::Call(function, Box::new(object), Some(Box::new(argument))))
    }

    fn primary(&mut self) -> Parsed {
        self.blanks();
        match self.rest().chars().next() {
            None => Err(self.fault("a value is expected, but the expression ends")),
            Some('(') => {
                self.at += 1;
                let inner = self.nested(Self::choice)?;
                self.expect(")")?;
                Ok(inner)
            }
            Some('[') => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.take("]") {
                    items.push(self.nested(Self::choice)?);
                    if !self.take(",") {
                        self.expect("]")?;
                        break;
                    }
                }
                Ok(Expression::List(items))
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(_) => self.word(),
        }
    }

    fn word(&mut self) -> Parsed {
        let start = self.at;
        let Some(name) = self.name() else { return Err(self.fault("a value is expected")) };
        let variable = match name {
            "true" => return Ok(Expression::Bool(true)),
            "false" => return Ok(Expression::Bool(false)),
            "null" => return Ok(Expression::Null),
            "has" | "size" if self.take("(") => {
                let inner = Box::new(self.nested(Self::choice)?);
                self.expect(")")?;
                return match (name, &*inner) {
                    ("size", _) => Ok(Expression::Call(Function::Size, inner, None)),
                    (_, Expression::Field(..) | Expression::Index(..)) => Ok(Expression::Has(inner)),
                    _ => Err(self.fault("has asks for a field")),
                };
            }
            "key" => Variable::Key,
            "value" => Variable::Value,
            "keySchema" => Variable::KeySchema,
            "valueSchema" => Variable::ValueSchema,
            "topic" => Variable::Topic,
            "header" | "headers" => Variable::Headers,
            _ => {
                self.at = start;
                return Err(self.fault(format_args!(
                    "'{name}' is not known; there are key, value, keySchema, valueSchema, topic, header, headers"
                )));
            }
        };
        Ok(Expression::Variable(variable))
    }

    fn name(&mut self) -> Option<&'a str> {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += end;
        Some(&rest[..end])
    }

    /// Consumes the word if it comes next, as a whole.
    fn word_is(&mut self, word: &str) -> bool {
        let start = self.at;
        if self.name() == Some(word) {
            return true;
        }
        self.at = start;
        false
    }

    fn number(&mut self) -> Parsed {
        let rest = self.rest();
        let digits = |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| from + n);
        let mut end = digits(0);
        let mut whole = true;
        if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
            (end, whole) = (digits(end + 1), false);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            (end, whole) = (digits(end + 1 + sign), false);
        }
        let text = &rest[..end];
        let wrong = || self.fault(format_args!("'{text}' is not a number"));
        let number = if whole {
            Expression::Int(text.parse().map_err(|_| wrong())?)
        } else {
            Expression::Double(text.parse().map_err(|_| wrong())?)
        };
        self.at += end;
        Ok(number)
    }

    fn quoted(&mut self, quote: char) -> Parsed {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c @ ('\\' | '\'' | '"'))) => text.push(c),
                    // Left for the regular expressions of `matches`.
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(Expression::Text(text.into()));
                }
                c => text.push(c),
            }
        }
        Err(self.fault("the text that starts here is not closed"))
    }
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}
