//! Collations: how texts compare, and `LIKE`.
//!
//! Three orders are kept, by the suffix of a collation's name ("Collation and Unicode support"):
//! case-insensitive, case-sensitive, and binary. The first two sort punctuation before digits before
//! letters and ignore trailing blanks; accents always count. Widths, kana and the weights of single
//! languages are not modelled.

use std::cmp::Ordering;

/// Names of the collations that SQLite knows.
pub(crate) const CI: &str = "ts_ci";
pub(crate) const CS: &str = "ts_cs";
pub(crate) const BIN: &str = "ts_bin";

/// The order that the collation of this name has.
pub(crate) fn order_of(collation: &str) -> &'static str {
    let upper = collation.to_uppercase();
    if upper.ends_with("_BIN") || upper.ends_with("_BIN2") {
        BIN
    } else if upper.contains("_CS_") {
        CS
    } else {
        CI
    }
}

fn rank(c: char) -> (u8, char) {
    let class = if c.is_alphabetic() {
        2
    } else if c.is_numeric() {
        1
    } else {
        0
    };
    (class, c.to_lowercase().next().unwrap_or(c))
}

pub(crate) fn compare_ci(left: &str, right: &str) -> Ordering {
    left.trim_end_matches(' ').chars().map(rank).cmp(right.trim_end_matches(' ').chars().map(rank))
}

pub(crate) fn compare_cs(left: &str, right: &str) -> Ordering {
    compare_ci(left, right).then_with(|| {
        // Lower case comes first.
        let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
        left.chars().map(|c| c.is_uppercase()).cmp(right.chars().map(|c| c.is_uppercase()))
    })
}

pub(crate) fn compare_bin(left: &str, right: &str) -> Ordering {
    left.trim_end_matches(' ').encode_utf16().cmp(right.trim_end_matches(' ').encode_utf16())
}

/// Names of objects: catalogs here are case-insensitive.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left.len() == right.len() && left == right || left.to_lowercase() == right.to_lowercase()
}

/// UTF-16 units, what `LEN` and lengths of `nvarchar` count.
pub(crate) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The first so many UTF-16 units.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut left = most;
    for (at, c) in text.char_indices() {
        if c.len_utf16() > left {
            return &text[..at];
        }
        left -= c.len_utf16();
    }
    text
}

enum Piece {
    Any,
    One,
    Set(Vec<(char, char)>, bool),
    Char(char),
}

/// "LIKE (Transact-SQL)": `%`, `_`, `[a-z]`, `[^a-z]`, `ESCAPE`.
pub(crate) fn like(text: &str, pattern: &str, escape: Option<char>, ignore_case: bool) -> bool {
    let fold = |c: char| if ignore_case { c.to_lowercase().next().unwrap_or(c) } else { c };
    let pieces = pieces(pattern, escape, &fold);
    let text: Vec<char> = text.chars().map(fold).collect();
    // Where the last `%` was, and how much of the text it has swallowed.
    let (mut t, mut p, mut back) = (0, 0, None);
    while t < text.len() {
        match pieces.get(p) {
            Some(Piece::Any) => {
                back = Some((p, t));
                p += 1;
                continue;
            }
            Some(piece) if matches(piece, text[t]) => {
                t += 1;
                p += 1;
                continue;
            }
            _ => {}
        }
        // Trailing blanks of the text are ignored.
        if p == pieces.len() && text[t..].iter().all(|c| *c == ' ') {
            return true;
        }
        match back {
            Some((at, from)) => {
                back = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
            None => return false,
        }
    }
    pieces[p..].iter().all(|piece| matches!(piece, Piece::Any))
}

fn matches(piece: &Piece, c: char) -> bool {
    match piece {
        Piece::Any => false,
        Piece::One => true,
        Piece::Char(expected) => *expected == c,
        Piece::Set(ranges, negated) => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
    }
}

fn pieces(pattern: &str, escape: Option<char>, fold: &impl Fn(char) -> char) -> Vec<Piece> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        if Some(c) == escape {
            if let Some(next) = chars.get(at) {
                pieces.push(Piece::Char(fold(*next)));
                at += 1;
            }
            continue;
        }
        match c {
            '%' => pieces.push(Piece::Any),
            '_' => pieces.push(Piece::One),
            '[' => {
                let negated = chars.get(at) == Some(&'^');
                let start = at + usize::from(negated);
                // A `]` that comes first would end an empty set, which matches nothing.
                let Some(end) = chars[start..].iter().position(|c| *c == ']').map(|n| start + n) else {
                    pieces.push(Piece::Set(Vec::new(), false));
                    continue;
                };
                let mut ranges = Vec::new();
                let mut i = start;
                while i < end {
                    if i + 2 < end && chars[i + 1] == '-' {
                        ranges.push((fold(chars[i]), fold(chars[i + 2])));
                        i += 3;
                    } else {
                        ranges.push((fold(chars[i]), fold(chars[i])));
                        i += 1;
                    }
                }
                pieces.push(Piece::Set(ranges, negated));
                at = end + 1;
            }
            c => pieces.push(Piece::Char(fold(c))),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_knows_sets_and_escapes() {
        for (text, pattern, escape, expected) in [
            ("SQL Server Agent (MSSQLSERVER)", "sql server agent (%", None, true),
            ("a%b", "a!%b", Some('!'), true),
            ("axb", "a!%b", Some('!'), false),
            ("b5", "[a-c][^0-4]", None, true),
            ("b3", "[a-c][^0-4]", None, false),
            ("abcabd", "%ab_", None, true),
            ("[x]", "[[]x]", None, true),
            ("a ", "a", None, true),
            ("", "%", None, true),
            ("", "_", None, false),
        ] {
            assert_eq!(like(text, pattern, escape, true), expected, "{text} like {pattern}");
        }
    }

    #[test]
    fn orders_differ_in_case_only_where_they_should() {
        assert_eq!(compare_ci("ABC ", "abc"), Ordering::Equal);
        assert_eq!(compare_cs("abc", "ABC"), Ordering::Less);
        assert_eq!(compare_bin("abc", "ABC"), Ordering::Greater);
        assert_eq!(compare_ci("a_b", "a1b"), Ordering::Less);
    }
}
