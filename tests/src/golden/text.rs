//! JSON at the level of its text: where each value stands. Nothing is rendered again, so the order of
//! fields, spacing and the notation of numbers stay as they were sent.

use std::ops::Range;

/// Deeper than any document that MongoDB takes.
const MOST_LEVELS: usize = 400;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    Scalar,
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The member of an object.
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        match &self.shape {
            Shape::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The value below members whose names are joined by dots.
    pub(super) fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, name| node.member(name))
    }

    pub(super) fn of<'a>(&self, text: &'a str) -> &'a str {
        &text[self.span.clone()]
    }

    /// What is inside an envelope of schema and payload, else the value itself.
    pub(super) fn payload(&self) -> &Node {
        match (&self.shape, self.member("schema"), self.member("payload")) {
            (Shape::Object(members), Some(_), Some(payload)) if members.len() == 2 => payload,
            _ => self,
        }
    }

    /// Every scalar, in the order of the text.
    pub(super) fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        match &self.shape {
            Shape::Scalar => visit(self),
            Shape::Array(items) => items.iter().for_each(|item| item.scalars(visit)),
            Shape::Object(members) => members.iter().for_each(|(_, node)| node.scalars(visit)),
        }
    }
}

/// The value of a text; none if the text is no JSON.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(node)
}

/// The text with other texts in some places, which do not overlap.
pub(super) fn exchange(text: &str, mut places: Vec<(Range<usize>, String)>) -> String {
    places.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (span, new) in places {
        out.push_str(&text[at..span.start]);
        out.push_str(&new);
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: u8) -> Option<()> {
        self.space();
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, level: usize) -> Option<Node> {
        if level > MOST_LEVELS {
            return None;
        }
        self.space();
        let start = self.at;
        let shape = match self.peek()? {
            b'{' => Shape::Object(self.listed(b'}', |r| {
                r.space();
                let name = serde_json::from_str(&r.text[r.string()?]).ok()?;
                r.eat(b':')?;
                Some((name, r.value(level + 1)?))
            })?),
            b'[' => Shape::Array(self.listed(b']', |r| r.value(level + 1))?),
            b'"' => self.string().map(|_| Shape::Scalar)?,
            _ => self.bare()?,
        };
        Some(Node { span: start..self.at, shape })
    }

    /// What stands between an opening sign, which is next, and the closing one.
    fn listed<T>(&mut self, close: u8, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut all = Vec::new();
        if self.eat(close).is_some() {
            return Some(all);
        }
        loop {
            all.push(one(self)?);
            if self.eat(b',').is_none() {
                self.eat(close)?;
                return Some(all);
            }
        }
    }

    /// The span of a string, quotes included.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.eat(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A number, or one of the three words.
    fn bare(&mut self) -> Option<Shape> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let known = matches!(word, "true" | "false" | "null" | "NaN") || word.parse::<f64>().is_ok();
        known.then_some(Shape::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_stand() {
        let text = r#" {"a": 1.0, "b" : [ "x\"]", {}, null ],"payload":{"c":1E+5}} "#;
        let root = read(text).expect("it is JSON");
        assert_eq!(root.at("a").map(|n| n.of(text)), Some("1.0"));
        assert_eq!(root.at("payload.c").map(|n| n.of(text)), Some("1E+5"));
        let mut scalars = Vec::new();
        root.scalars(&mut |n| scalars.push(n.of(text)));
        assert_eq!(scalars, ["1.0", r#""x\"]""#, "null", "1E+5"]);
        assert!(matches!(&root.at("b").expect("b").shape, Shape::Array(items) if items.len() == 3));
    }

    #[test]
    fn what_is_no_json_is_none() {
        for text in ["", "{", "[1,]", r#"{"a"}"#, r#""x"#, "1 2", "word", r#""x\"#, r#"{"a":1]"#] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(100_000)), None);
    }

    #[test]
    fn an_envelope_is_looked_through() {
        let text = r#"{"schema":{},"payload":{"a":1}}"#;
        assert_eq!(read(text).expect("JSON").payload().of(text), r#"{"a":1}"#);
        let text = r#"{"payload":{"a":1}}"#;
        assert_eq!(read(text).expect("JSON").payload().of(text), text);
    }

    #[test]
    fn places_are_exchanged() {
        assert_eq!(exchange("abcdef", vec![(4..5, "X".into()), (0..2, String::new())]), "cdXf");
    }
}
