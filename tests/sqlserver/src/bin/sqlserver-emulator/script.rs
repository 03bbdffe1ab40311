//! Scripts: batches between lines with `GO`, run one after the other.
//!
//! Follows "SQL Server Utilities Statements - GO": a line of its own, with a count if the batch is to run more
//! than once; it is not seen inside of strings, names in brackets and comments. An error ends the script.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use thalweg_sqlserver_emulator::session::{Answers, Cancelled, Login, Message, Request, Server};

#[derive(Debug, PartialEq, Eq)]
struct Batch {
    text: String,
    /// Line of the file on which it begins, from 1.
    line: u32,
    times: u32,
}

/// Runs a file as the administrator (name and password). Errors name file and line.
pub(crate) fn run(file: &Path, server: &dyn Server, (user, password): &(String, String)) -> Result<()> {
    let text = std::fs::read(file).with_context(|| format!("reading the script {}", file.display()))?;
    let text = String::from_utf8(text).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        anyhow!("the script {} is not UTF-8 (byte {at}); save it as UTF-8", file.display())
    })?;
    let login = Login {
        user: user.clone(),
        password: password.clone(),
        application: "sqlserver-emulator".into(),
        ..Login::default()
    };
    let (mut session, _) = server.login(&login).map_err(|e| anyhow!("error {}: {}", e.number, e.text))?;
    for batch in batches(text.trim_start_matches('\u{feff}')).with_context(|| file.display().to_string())? {
        for _ in 0..batch.times {
            let mut listener = Listener::default();
            let ran = session.run(Request::Batch(batch.text.clone()), &mut listener);
            let (file, line) = (file.display(), batch.line);
            match listener.error {
                Some(e) if e.procedure.is_empty() => {
                    bail!("{file}, line {}: error {}: {}", line + e.line.max(1) - 1, e.number, e.text)
                }
                // Its line is one of the procedure's own text.
                Some(e) => bail!(
                    "{file}, batch at line {line}: procedure {}, line {}: error {}: {}",
                    e.procedure,
                    e.line,
                    e.number,
                    e.text
                ),
                None if ran.is_err() => bail!("{file}, batch at line {line}: the session was ended"),
                None => {}
            }
        }
    }
    Ok(())
}

/// What the text is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// Up to this character, which twice is itself.
    Quotes(char),
    /// Comments nest.
    Comment(u32),
}

fn batches(text: &str) -> Result<Vec<Batch>> {
    let mut all = Vec::new();
    let mut batch = Batch { text: String::new(), line: 1, times: 1 };
    let mut inside = Inside::Nothing;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if inside == Inside::Nothing
            && let Some(times) = separator(line, number)?
        {
            let next = Batch { text: String::new(), line: number + 1, times: 1 };
            let done = std::mem::replace(&mut batch, next);
            all.push(Batch { times, ..done });
            continue;
        }
        inside = after(inside, line);
        batch.text.push_str(line);
    }
    all.push(batch);
    all.retain(|b| b.times > 0 && !b.text.trim().is_empty());
    Ok(all)
}

/// How often the batch before runs, if the line is a separator.
fn separator(line: &str, number: u32) -> Result<Option<u32>> {
    let mut words = line.split("--").next().unwrap_or("").split_whitespace();
    if !words.next().is_some_and(|w| w.eq_ignore_ascii_case("go")) {
        return Ok(None);
    }
    match (words.next(), words.next()) {
        (None, _) => Ok(Some(1)),
        (Some(count), None) => match count.trim_end_matches(';').parse() {
            Ok(count) => Ok(Some(count)),
            Err(_) => bail!("line {number}: GO {count}: a number of runs is expected after GO"),
        },
        _ => bail!("line {number}: only a number of runs may follow GO"),
    }
}

/// What the next line is inside of.
fn after(mut inside: Inside, line: &str) -> Inside {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        inside = match (inside, c, chars.peek()) {
            (Inside::Nothing, '-', Some('-')) => return Inside::Nothing,
            (Inside::Nothing, '\'' | '"', _) => Inside::Quotes(c),
            (Inside::Nothing, '[', _) => Inside::Quotes(']'),
            (Inside::Nothing, '/', Some('*')) => {
                chars.next();
                Inside::Comment(1)
            }
            (Inside::Comment(depth), '/', Some('*')) => {
                chars.next();
                Inside::Comment(depth + 1)
            }
            (Inside::Comment(depth), '*', Some('/')) => {
                chars.next();
                if depth == 1 { Inside::Nothing } else { Inside::Comment(depth - 1) }
            }
            (Inside::Quotes(end), c, next) if c == end => {
                if next == Some(&end) {
                    chars.next();
                    Inside::Quotes(end)
                } else {
                    Inside::Nothing
                }
            }
            (same, ..) => same,
        };
    }
    inside
}

/// Keeps the first error; shows what the script prints.
#[derive(Default)]
struct Listener {
    error: Option<Message>,
}

impl Answers for Listener {
    fn message(&mut self, message: &Message) -> Result<(), Cancelled> {
        if message.class > 10 {
            self.error.get_or_insert_with(|| message.clone());
            return Err(Cancelled);
        }
        // Not that the database was changed.
        if message.number != 5701 {
            eprintln!("{}", message.text);
        }
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.error.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, batches};

    fn batch(text: &str, line: u32, times: u32) -> Batch {
        Batch { text: text.into(), line, times }
    }

    #[test]
    fn lines_with_go_separate_batches() {
        let found = batches("USE a\ngo\n\nSELECT 1\n GO 3 -- thrice\nSELECT 2").unwrap();
        assert_eq!(found, [batch("USE a\n", 1, 1), batch("\nSELECT 1\n", 3, 3), batch("SELECT 2", 6, 1)]);
    }

    #[test]
    fn go_inside_of_strings_names_and_comments_is_text() {
        let text = "SELECT 'it''s\nGO\n' AS [a]]\nGO\n] /* /* */\nGO\n*/ -- 'open\nGO\nSELECT 2";
        let found = batches(text).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], batch("SELECT 2", 9, 1));
    }

    #[test]
    fn what_follows_go_is_a_number() {
        let error = batches("SELECT 1\nGO x").unwrap_err().to_string();
        assert!(error.starts_with("line 2: GO x:"), "{error}");
        assert!(batches("SELECT 1\nGO 1 2").is_err());
    }
}
