//! Extended JSON over several lines, as the Java driver writes it when it indents: two blanks a level,
//! every member and element on a line of its own.

use bson::{Document, RawDocumentBuf};
use thalweg_core::Error;
use thalweg_core::record::TextForm;
use thalweg_core::transform::invalid;

use crate::extended_json::{Writer, write_value};
use crate::raw::kind;

/// Canonical extended JSON (version 2) of a document.
pub(super) fn canonical(document: &Document) -> Result<String, Error> {
    let unreadable = || invalid("the document cannot be written as extended JSON");
    let raw = RawDocumentBuf::try_from(document).map_err(|_| unreadable())?;
    let mut compact = Vec::new();
    write_value(Writer::Canonical, TextForm::Plain, kind::DOCUMENT, raw.as_bytes(), &mut compact)
        .map_err(|_| unreadable())?;
    Ok(indented(&String::from_utf8_lossy(&compact)))
}

/// JSON with blanks behind colons only, over several lines.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0usize;
    let mut chars = compact.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        match c {
            '{' | '[' => {
                out.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(closing) => out.push(closing),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            '"' => {
                out.push(c);
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::doc;
    use proptest::prelude::*;

    use super::*;
    use crate::lenient_json::parse_document;

    #[test]
    fn members_and_elements_have_lines_of_their_own() {
        let text = canonical(&doc! {"a": [1, []], "b,{": "x\"}", "c": {}}).unwrap();
        let expected = [
            "{",
            r#"  "a": ["#,
            "    {",
            r#"      "$numberInt": "1""#,
            "    },",
            "    []",
            "  ],",
            r#"  "b,{": "x\"}","#,
            r#"  "c": {}"#,
            "}",
        ];
        assert_eq!(text, expected.join("\n"));
        assert_eq!(canonical(&doc! {}).unwrap(), "{}");
    }

    proptest! {
        #[test]
        fn it_is_the_same_document(text in "\\PC{0,12}", n in any::<i64>(), name in "[a-z{}\\[\\],\"\\\\]{1,6}") {
            let document = doc! {name: {"n": n, "t": text.clone(), "l": [text, {"x": [[]]}]}};
            prop_assert_eq!(parse_document(&canonical(&document).unwrap()).unwrap(), document);
        }
    }
}
