//! PEM text as it arrives in a property: often on one line, because a properties file has no line
//! breaks of its own. OpenSSL wants them, so they are put back.

const WIDTH: usize = 64;

/// Blocks separated and wrapped as OpenSSL reads them; `None` if there is no complete block. A block
/// that has line breaks of its own is left alone (it may carry headers).
pub(super) fn normalise(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("-----BEGIN ") {
        let after = &rest[start..];
        let label_end = after[11..].find("-----")? + 11;
        let label = &after[11..label_end];
        let body = &after[label_end + 5..];
        let footer = format!("-----END {label}-----");
        let end = body.find(&footer)?;
        let content = body[..end].trim();
        out.push_str(&format!("-----BEGIN {label}-----\n"));
        if content.contains('\n') {
            out.push_str(content);
            out.push('\n');
        } else {
            let packed: Vec<char> = content.chars().filter(|c| !c.is_whitespace()).collect();
            for line in packed.chunks(WIDTH) {
                out.extend(line);
                out.push('\n');
            }
        }
        out.push_str(&footer);
        out.push('\n');
        rest = &body[end + footer.len()..];
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_wrapped() {
        let body = "A".repeat(70);
        let text = format!(
            "-----BEGIN CERTIFICATE----- {body} -----END CERTIFICATE----- -----BEGIN X----- QQ== -----END X-----"
        );
        let wrapped = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n{}\n-----END CERTIFICATE-----\n-----BEGIN X-----\nQQ==\n-----END X-----\n",
            "A".repeat(64),
            "A".repeat(6)
        );
        assert_eq!(normalise(&text).as_deref(), Some(wrapped.as_str()));
        assert_eq!(normalise(&wrapped), Some(wrapped.clone()), "stable");
    }

    #[test]
    fn what_is_not_pem_is_refused() {
        for text in ["", "abc", "-----BEGIN A-----", "-----BEGIN A----- x -----END B-----", "-----BEGIN "] {
            assert_eq!(normalise(text), None, "{text}");
        }
    }
}
