//! The login part of `sasl.jaas.config`: which module, which user, which password.
//!
//! Accepts the grammar that Java clients accept: a module class, a control flag, `name=value`
//! options with quoted values and backslash escapes, comments, and a closing semicolon. One module
//! only. It does not know which SASL mechanism is configured; `settings` compares.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use thalweg_config::Secret;

/// Login modules that can be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginModule {
    Plain,
    Scram,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) module: LoginModule,
    pub(super) username: String,
    pub(super) password: Secret,
}

/// What is wrong, without any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JaasError {
    Syntax(&'static str),
    Module(String),
    Missing(&'static str),
    Unsupported(&'static str),
}

impl fmt::Display for JaasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(what) => {
                write!(f, "{what}; expected: <login module> required username=\"...\" password=\"...\";")
            }
            Self::Module(name) => write!(
                f,
                "the login module {name} is not supported; use PlainLoginModule or ScramLoginModule, or TLS client certificates"
            ),
            Self::Missing(option) => write!(f, "the login module has no option {option}"),
            Self::Unsupported(what) => f.write_str(what),
        }
    }
}

const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];

pub(super) fn parse(text: &str) -> Result<Login, JaasError> {
    let mut words = Words { rest: text.chars().peekable() };
    let module = words.text()?.ok_or(JaasError::Syntax("the login module is missing"))?;
    let module = match module.rsplit('.').next().unwrap_or_default() {
        "PlainLoginModule" => LoginModule::Plain,
        "ScramLoginModule" => LoginModule::Scram,
        _ => return Err(JaasError::Module(shorten(&module))),
    };
    let flag = words.text()?.ok_or(JaasError::Syntax("the control flag is missing"))?;
    if !FLAGS.iter().any(|f| f.eq_ignore_ascii_case(&flag)) {
        return Err(JaasError::Syntax("the control flag must be required, requisite, sufficient or optional"));
    }
    let (mut username, mut password) = (None, None);
    loop {
        match words.next()? {
            Some(Word::Semicolon) => break,
            Some(Word::Text(option)) => {
                if words.next()? != Some(Word::Equals) {
                    return Err(JaasError::Syntax("an option has no value"));
                }
                let Some(Word::Text(value)) = words.next()? else {
                    return Err(JaasError::Syntax("an option has no value"));
                };
                match option.as_str() {
                    "username" => username = Some(value),
                    "password" => password = Some(Secret::new(value)),
                    "tokenauth" if value.eq_ignore_ascii_case("true") => {
                        return Err(JaasError::Unsupported(
                            "delegation tokens (tokenauth=true) are not supported; use the user's own SCRAM credentials",
                        ));
                    }
                    _ => {}
                }
            }
            Some(Word::Equals) => return Err(JaasError::Syntax("an option has no name")),
            None => return Err(JaasError::Syntax("the closing semicolon is missing")),
        }
    }
    if words.next()?.is_some() {
        return Err(JaasError::Syntax("there is more than one login module"));
    }
    Ok(Login {
        module,
        username: username.ok_or(JaasError::Missing("username"))?,
        password: password.ok_or(JaasError::Missing("password"))?,
    })
}

/// A class name is shown in a message; a value pasted in its place must not flood it.
fn shorten(name: &str) -> String {
    name.chars().take(100).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Word {
    Text(String),
    Equals,
    Semicolon,
}

struct Words<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Words<'_> {
    fn text(&mut self) -> Result<Option<String>, JaasError> {
        match self.next()? {
            Some(Word::Text(text)) => Ok(Some(text)),
            Some(_) => Err(JaasError::Syntax("a word is missing")),
            None => Ok(None),
        }
    }

    fn next(&mut self) -> Result<Option<Word>, JaasError> {
        self.skip_blanks()?;
        Ok(match self.rest.next() {
            None => None,
            Some('=') => Some(Word::Equals),
            Some(';') => Some(Word::Semicolon),
            Some(quote @ ('"' | '\'')) => Some(Word::Text(self.quoted(quote)?)),
            Some(first) => {
                let mut word = String::from(first);
                while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !matches!(c, '=' | ';' | '"' | '\'')) {
                    word.push(c);
                }
                Some(Word::Text(word))
            }
        })
    }

    fn skip_blanks(&mut self) -> Result<(), JaasError> {
        loop {
            while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
            let mut ahead = self.rest.clone();
            match (ahead.next(), ahead.next()) {
                (Some('/'), Some('/')) => while self.rest.next_if(|c| *c != '\n').is_some() {},
                (Some('/'), Some('*')) => {
                    self.rest = ahead;
                    let mut last = ' ';
                    loop {
                        match self.rest.next() {
                            Some('/') if last == '*' => break,
                            Some(c) => last = c,
                            None => return Err(JaasError::Syntax("a comment is not closed")),
                        }
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// After the opening quote. Escapes as in Java: `\n`, `\t`, ..., up to three octal digits; any
    /// other escaped character stands for itself.
    fn quoted(&mut self, quote: char) -> Result<String, JaasError> {
        const OPEN: JaasError = JaasError::Syntax("a quote is not closed");
        let mut text = String::new();
        loop {
            match self.rest.next().ok_or(OPEN)? {
                c if c == quote => return Ok(text),
                '\\' => match self.rest.next().ok_or(OPEN)? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    'a' => text.push('\u{7}'),
                    'v' => text.push('\u{b}'),
                    first @ '0'..='7' => {
                        let mut code = first as u32 - '0' as u32;
                        // A third digit only fits after 0 to 3: the code is one byte.
                        for _ in 0..if first <= '3' { 2 } else { 1 } {
                            let Some(digit) = self.rest.next_if(|c| ('0'..='7').contains(c)) else { break };
                            code = code * 8 + (digit as u32 - '0' as u32);
                        }
                        text.extend(char::from_u32(code));
                    }
                    c => text.push(c),
                },
                '\n' | '\r' => return Err(OPEN),
                c => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn ok(text: &str) -> (LoginModule, String, String) {
        let login = parse(text).unwrap();
        (login.module, login.username, login.password.reveal().to_owned())
    }

    #[test]
    fn usual_forms() {
        let plain =
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"al ice\" password=\"p;=w\";";
        assert_eq!(ok(plain), (LoginModule::Plain, "al ice".into(), "p;=w".into()));
        let scram = "  org.apache.kafka.common.security.scram.ScramLoginModule   REQUIRED\n  password='it\\'s \\\\ \"x\"'\n username=bob123 ; ";
        assert_eq!(ok(scram), (LoginModule::Scram, "bob123".into(), "it's \\ \"x\"".into()));
        let extra = "// who\nPlainLoginModule required /* a=b; */ serviceName=\"kafka\" username=\"u\" password=\"\\101\\n\\0667\";";
        assert_eq!(ok(extra), (LoginModule::Plain, "u".into(), "A\n67".into()));
        assert_eq!(ok("PlainLoginModule required username=u password=\"\";").2, "");
    }

    #[test]
    fn faults_name_what_is_missing_and_show_no_value() {
        for (text, says) in [
            ("", "login module is missing"),
            ("PlainLoginModule", "control flag is missing"),
            ("PlainLoginModule maybe username=\"u\" password=\"s3cret\";", "control flag must be"),
            ("PlainLoginModule required username=\"u\" password=\"s3cret\"", "closing semicolon"),
            ("PlainLoginModule required username=\"u\" password=\"s3cret;", "quote is not closed"),
            ("PlainLoginModule required username=\"u\" password s3cret;", "has no value"),
            ("PlainLoginModule required =s3cret;", "has no name"),
            ("PlainLoginModule required username=\"u\";", "no option password"),
            ("PlainLoginModule required password=\"s3cret\";", "no option username"),
            (
                "PlainLoginModule required username=\"u\" password=\"s3cret\"; PlainLoginModule required;",
                "more than one",
            ),
            (
                "com.sun.security.auth.module.Krb5LoginModule required keyTab=\"s3cret\";",
                "Krb5LoginModule is not supported",
            ),
            ("ScramLoginModule required username=u password=s3cret tokenauth=true;", "delegation tokens"),
            ("PlainLoginModule required /* username=u", "comment is not closed"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn quoted_values_survive(user in "\\PC{0,12}", password in "\\PC{0,20}") {
            let quote = |t: &str| format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\""));
            let text = format!("a.b.ScramLoginModule required username={} password={};", quote(&user), quote(&password));
            prop_assert_eq!(ok(&text), (LoginModule::Scram, user, password));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
