//! Answers to logins.
//!
//! [MS-TDS] "Login Response" under "Server Messages"; the order of tokens is SQL Server's.

use super::login::{Login7, feature};
use super::token::{self, Done, DoneKind, environment};
use crate::session::{Change, Greeting, Message};

const LANGUAGE: &str = "us_english";
/// Other names of the language in `sys.syslanguages`.
const LANGUAGE_ALIASES: [&str; 2] = [LANGUAGE, "English"];

/// Why the login cannot even be asked about; the session's own reasons come from the session.
pub(crate) fn obstacle(login: &Login7) -> Option<Message> {
    if login.integrated {
        let text =
            "Login failed. The login is from an untrusted domain and cannot be used with Integrated authentication.";
        return Some(error(18452, 14, text.into()));
    }
    let known = login.language.is_empty() || LANGUAGE_ALIASES.iter().any(|l| l.eq_ignore_ascii_case(&login.language));
    if known || !login.language_or_nothing {
        return None;
    }
    let text = format!(
        "SET LANGUAGE failed because '{}' is not an official language name or a language alias on this SQL Server.",
        login.language
    );
    Some(error(2740, 16, text))
}

pub(crate) fn error(number: u32, class: u8, text: String) -> Message {
    Message { number, state: 1, class, text, procedure: String::new(), line: 1 }
}

/// The tokens of a login that is taken. `packet_size`: the one so far.
pub(crate) fn taken(login: &Login7, greeting: &Greeting, server: &str, packet_size: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let (from, to) = ("master".to_owned(), greeting.database.clone());
    let text = format!("Changed database context to '{to}'.");
    environment::change(&Change::Database { from, to }, &mut out);
    let information = |number, state, text: String, out: &mut Vec<u8>| {
        token::message(&Message { state, ..error(number, 0, text) }, server, out);
    };
    information(5701, 2, text, &mut out);
    environment::collation(&mut out);
    environment::change(&Change::Language { from: String::new(), to: LANGUAGE.into() }, &mut out);
    information(5703, 1, format!("Changed language setting to {LANGUAGE}."), &mut out);
    token::login(login.version, &greeting.program, greeting.version, &mut out);
    // Of what clients ask for, the server has UTF-8 collations. What it does not acknowledge it does not
    // have, column encryption and session recovery among it.
    if login.features.contains(&feature::UTF8) {
        token::features(&[(feature::UTF8, &[1])], &mut out);
    }
    environment::packet_size(login.packet_size, packet_size, &mut out);
    Done::of(DoneKind::Statement, false).put(false, &mut out);
    out
}

/// The tokens of an answer that is an error and nothing else.
pub(crate) fn refused(error: &Message, server: &str) -> Vec<u8> {
    let mut out = Vec::new();
    token::message(error, server, &mut out);
    Done::of(DoneKind::Statement, true).put(false, &mut out);
    out
}
