//! Hides credentials in texts that are logged or shown.
//!
//! Invariant: rather too much is hidden than too little; a text that cannot be taken apart safely
//! loses more than its password. It does not find secrets that stand alone in a sentence: values
//! that came from a reference are hidden by [`crate::provider::References`].

use crate::properties::Properties;

/// What stands in place of a part.
pub const PART: &str = "***";
/// What stands in place of a whole value.
pub const WHOLE: &str = "********";

/// Endings of the names whose values are secret as a whole.
const SECRET_NAMES: &[&str] = &[
    "secret",
    "password",
    "passphrase",
    "sasl.jaas.config",
    "basic.auth.user.info",
    "registry.auth.client-secret",
    "credentials.json",
    "connectionstring",
    "connection.string",
    "ssl.keystore.key",
    "ssl.key.pem",
    "secret.key",
    "secret.access.key",
    "token",
];

/// Names of `name=value` parts (connection strings, DSNs, login modules) whose values are hidden;
/// compared without blanks and case.
const SECRET_PARTS: &[&str] = &[
    "pwd",
    "uid",
    "user",
    "userid",
    "username",
    "proxyusername",
    "authsource",
    "authmechanismproperties",
    "accesskey",
    "accesskeyid",
];

/// Whether the value of option `name` is secret as a whole.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|ending| name.ends_with(ending)) || name.contains("registry.auth.client-secret")
}

/// Names and values fit to be logged.
pub fn properties(properties: &Properties) -> Vec<(&str, String)> {
    properties.iter().map(|(name, value)| (name, self::value(name, value))).collect()
}

/// The value of option `name`, fit to be logged. A reference is no secret and stays readable.
pub fn value(name: &str, value: &str) -> String {
    if is_secret(name) && !(value.starts_with("${") && value.ends_with('}') && !value[2..].contains("${")) {
        return WHOLE.to_owned();
    }
    text(value)
}

/// Any text (a connection string, a DSN, a driver's message) without user names and passwords.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let jdbc = before.contains("jdbc:");
        let end = after.find(|c: char| c.is_whitespace() || c == '"' || (jdbc && c == ';')).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        out.push_str(without_user_info(url, &mut String::new()));
        rest = tail;
    }
    out.push_str(rest);
    hide_parts(&out)
}

/// The part of a URL behind `scheme://`, with everything up to the host replaced.
fn without_user_info<'a>(url: &str, out: &'a mut String) -> &'a str {
    let query = url.find('?').unwrap_or(url.len());
    let authority = url.find(['/', '?']).unwrap_or(url.len());
    // An @ in the query is innocent only as part of an option (`appName=@me@`); anywhere else it
    // belongs to a password that holds an unescaped / or ?.
    let options_begin = url[query..].find('=').map_or(url.len(), |at| query + at);
    let cut = url[..options_begin].rfind('@').or_else(|| url[..authority].rfind('@'));
    match cut {
        Some(at) => {
            out.push_str(PART);
            if url[..at].contains(':') {
                out.push(':');
                out.push_str(PART);
            }
            out.push_str(&url[at..]);
        }
        None => out.push_str(url),
    }
    out
}

/// Replaces the values of `name=value` parts with a secret name. A value ends at `;`, `&`, `,`, a
/// blank or the end, or with its closing quote or brace.
fn hide_parts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        let start = before[..at].rfind([';', '&', ',', '?', '\n', '{', '"', '\'', '(']).map_or(0, |i| i + 1);
        let name = &before[start..at];
        let secret = part_is_secret(name);
        if !secret {
            rest = after;
            continue;
        }
        let value = value_length(after);
        if value > 0 {
            out.push_str(PART);
        }
        rest = &after[value..];
    }
    out.push_str(rest);
    out
}

fn part_is_secret(name: &str) -> bool {
    let compact: String = name.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    // Login modules put several words before the name: `PlainLoginModule required username="a"`.
    let last = name.split_whitespace().next_back().unwrap_or("").to_ascii_lowercase();
    [compact.as_str(), last.as_str()].iter().any(|name| {
        SECRET_PARTS.contains(name)
            || ["password", "secret", "token", "passphrase", "connectionstring"].iter().any(|w| name.ends_with(w))
    })
}

/// Bytes of the value at the start of `text`.
fn value_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let blanks = text.len() - text.trim_start_matches(' ').len();
    match text[blanks..].chars().next() {
        Some('{') => brace_length(&text[blanks..]) + blanks,
        Some(quote @ ('"' | '\'')) => {
            let mut escaped = false;
            for (at, c) in chars.by_ref().skip(blanks + 1) {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    c if c == quote => return at + 1,
                    _ => {}
                }
            }
            text.len()
        }
        _ => text.find([';', '&', ',', ' ', '\n', '"', '\'', ')']).unwrap_or(text.len()),
    }
}

/// An ODBC value in braces: `}}` is a brace inside it.
fn brace_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '}' && chars.next_if(|(_, next)| *next == '}').is_none() {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cfg_03_credentials_of_connection_strings_are_hidden() {
        for (given, shown) in [
            ("mongodb://h:27017/?replicaSet=rs0", "mongodb://h:27017/?replicaSet=rs0"),
            ("mongodb://u:p%40ss@h/", "mongodb://***:***@h/"),
            ("mongodb://u@h/", "mongodb://***@h/"),
            (
                "mongodb://u:p@h1,h2:27018/db?authSource=other&tls=true",
                "mongodb://***:***@h1,h2:27018/db?authSource=***&tls=true",
            ),
            ("mongodb://u:p@h/?appName=@me@&tls=true", "mongodb://***:***@h/?appName=@me@&tls=true"),
            ("mongodb+srv://u:p/a?b@h/x", "mongodb+srv://***:***@h/x"),
            ("mongodb://u:p@x@h/", "mongodb://***:***@h/"),
            ("cannot reach mongodb://u:p@h/: refused", "cannot reach mongodb://***:***@h/: refused"),
            ("Driver={Ifx};UID=me;PWD={a;}}b};Host=h", "Driver={Ifx};UID=***;PWD=***;Host=h"),
            (
                "jdbc:sqlserver://h:1433;user=sa;password=x y;encrypt=true",
                "jdbc:sqlserver://h:1433;user=***;password=*** y;encrypt=true",
            ),
            (
                r#"org.x.PlainLoginModule required username="a" password="b\"c";"#,
                r#"org.x.PlainLoginModule required username=*** password=***;"#,
            ),
            ("http://u:p@registry:8081 and http://registry", "http://***:***@registry:8081 and http://registry"),
            ("nothing here = x", "nothing here = x"),
        ] {
            assert_eq!(text(given), shown, "{given}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in [
            "mongodb.password",
            "mongodb.connection.string",
            "producer.override.sasl.jaas.config",
            "value.converter.basic.auth.user.info",
            "a.client.secret",
            "database.PASSWORD",
            "ssl.keystore.key",
        ] {
            assert!(is_secret(name), "{name}");
            assert_eq!(value(name, "x"), WHOLE);
            assert_eq!(value(name, "${file:/s:x}"), "${file:/s:x}");
            assert_eq!(value(name, "${file:/s:x}y${a:b}"), WHOLE);
        }
        assert_eq!(value("topic.prefix", "p"), "p");
        let given = Properties::from([("a.password", "x"), ("b", "mongodb://u:p@h")]);
        assert_eq!(properties(&given), [("a.password", WHOLE.to_owned()), ("b", "mongodb://***:***@h".to_owned())]);
    }

    proptest! {
        #[test]
        fn no_password_survives(user in "[a-z]{1,8}", password in "[ -~]{0,6}SECRET[ -~&&[^ \"]]{0,6}", host in "[a-z]{1,8}") {
            let password: String = password.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
            prop_assume!(!password.contains('='));
            let shown = text(&format!("mongodb://{user}:{password}@{host}/?replicaSet=rs0"));
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
        }

        #[test]
        fn odbc_passwords_do_not_survive(password in "[ -~]{0,6}SECRET[ -~]{0,6}") {
            let shown = text(&format!("Driver={{x}};PWD={{{}}};Host=h", password.replace('}', "}}")));
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
            prop_assert!(shown.ends_with(";Host=h"), "{}", shown);
        }

        #[test]
        fn any_text_is_masked_without_panic(given in ".{0,60}") {
            let once = text(&given);
            prop_assert!(once.len() <= given.len() * 4 + 8);
        }
    }
}
