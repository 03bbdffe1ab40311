//! Documents of scenarios: MongoDB Extended JSON, documents from bytes, and documents made by a rule
//! because they would be too long to write out.
//!
//! Plain numbers are taken as 32-bit, 64-bit or double, whichever is the first to hold them.

use std::str::FromStr;

use anyhow::{Context, Result, bail};
use bson::spec::BinarySubtype;
use bson::{
    Binary, Bson, DateTime, Decimal128, Document, JavaScriptCodeWithScope, RawDocumentBuf, Regex, Timestamp,
    oid::ObjectId,
};
use serde_json::{Map, Value};

/// A document as its bytes: `{"$raw": hex}` may hold what no client would write.
pub(super) fn document(value: &Value) -> Result<RawDocumentBuf> {
    if let Some(hex) = only(value, "$raw").and_then(Value::as_str) {
        return Ok(RawDocumentBuf::from_bytes(bytes(hex)?)?);
    }
    match bson(value)? {
        Bson::Document(document) => Ok(RawDocumentBuf::try_from(&document)?),
        other => bail!("{other} is no document"),
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

/// The member of an object that has no other.
fn only<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.as_object().filter(|members| members.len() == 1)?.get(name)
}

pub(super) fn bson(value: &Value) -> Result<Bson> {
    Ok(match value {
        Value::Null => Bson::Null,
        Value::Bool(b) => Bson::Boolean(*b),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => i32::try_from(n).map_or(Bson::Int64(n), Bson::Int32),
            (None, Some(n)) => Bson::Double(n),
            (None, None) => bail!("{n} is out of range"),
        },
        Value::String(text) => Bson::String(text.clone()),
        Value::Array(items) => Bson::Array(items.iter().map(bson).collect::<Result<_>>()?),
        Value::Object(members) => match special(members).with_context(|| value.to_string())? {
            Some(special) => special,
            None => Bson::Document(
                members.iter().map(|(name, value)| Ok((name.clone(), bson(value)?))).collect::<Result<Document>>()?,
            ),
        },
    })
}

/// The value that an object stands for, if it is no document.
fn special(members: &Map<String, Value>) -> Result<Option<Bson>> {
    let Some((name, value)) = members.iter().next() else {
        return Ok(None);
    };
    let text = || value.as_str().context("a text is expected");
    Ok(Some(match name.as_str() {
        "$gen" => made(value)?,
        "$numberInt" => Bson::Int32(text()?.parse()?),
        "$numberLong" => Bson::Int64(text()?.parse()?),
        "$numberDouble" => Bson::Double(text()?.parse()?),
        "$numberDecimal" => Bson::Decimal128(Decimal128::from_str(text()?)?),
        "$oid" => Bson::ObjectId(ObjectId::parse_str(text()?)?),
        "$date" => match bson(value)? {
            Bson::Int64(millis) => Bson::DateTime(DateTime::from_millis(millis)),
            other => bail!("{other} is no date"),
        },
        "$binary" => {
            let content = value["base64"].as_str().context("base64 is missing")?;
            let subtype = u8::from_str_radix(value["subType"].as_str().context("subType is missing")?, 16)?;
            Bson::Binary(Binary::from_base64(content, BinarySubtype::from(subtype))?)
        }
        "$timestamp" => {
            let part = |name| value[name].as_u64().and_then(|n| u32::try_from(n).ok()).context("t and i are expected");
            Bson::Timestamp(Timestamp { time: part("t")?, increment: part("i")? })
        }
        "$regularExpression" => {
            let part = |name| value[name].as_str().context("pattern and options are expected");
            Bson::RegularExpression(Regex {
                pattern: part("pattern")?.try_into()?,
                options: part("options")?.try_into()?,
            })
        }
        "$code" => match members.get("$scope").map(bson).transpose()? {
            None => Bson::JavaScriptCode(text()?.to_owned()),
            Some(Bson::Document(scope)) => {
                Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: text()?.to_owned(), scope })
            }
            Some(other) => bail!("{other} is no scope"),
        },
        "$minKey" => Bson::MinKey,
        "$maxKey" => Bson::MaxKey,
        _ => return Ok(None),
    }))
}

/// `{"repeat": text, "times": n}` is a long text, `{"nest": n, "leaf": value}` a deep document.
fn made(rule: &Value) -> Result<Bson> {
    let count = |name: &str| rule[name].as_u64().and_then(|n| usize::try_from(n).ok());
    if let (Some(text), Some(times)) = (rule["repeat"].as_str(), count("times")) {
        return Ok(Bson::String(text.repeat(times)));
    }
    let depth = count("nest").context("the rule is not known")?;
    let leaf = bson(rule.get("leaf").context("leaf is missing")?)?;
    Ok((0..depth).fold(leaf, |inner, _| Bson::Document([("n".to_owned(), inner)].into_iter().collect())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_type_that_is_written() -> Result<()> {
        assert_eq!(bson(&json!({"$numberLong": "1"}))?, Bson::Int64(1));
        assert_eq!(bson(&json!(1))?, Bson::Int32(1));
        assert_eq!(bson(&json!(1.5))?, Bson::Double(1.5));
        assert!(bson(&json!({"$numberDouble": "-0.0"}))?.as_f64().is_some_and(f64::is_sign_negative));
        assert_eq!(bson(&json!({"$date": {"$numberLong": "-1"}}))?, Bson::DateTime(DateTime::from_millis(-1)));
        assert_eq!(bson(&json!({"$gen": {"nest": 2, "leaf": "x"}}))?, Bson::Document(bson::doc! {"n": {"n": "x"}}));
        assert!(bson(&json!({"$numberInt": "x"})).is_err());
        // A reference is a document, an operator too.
        let reference = bson(&json!({"$ref": "c", "$id": 1}))?;
        assert_eq!(reference, Bson::Document(bson::doc! {"$ref": "c", "$id": 1}));
        Ok(())
    }

    #[test]
    fn bytes_reach_the_document_as_they_are() -> Result<()> {
        let raw = document(&json!({"$raw": "0c0000001061000100000000"}))?;
        assert_eq!(raw.get_i32("a")?, 1);
        assert!(document(&json!([1])).is_err());
        Ok(())
    }
}
