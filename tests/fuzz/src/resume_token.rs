//! Resume tokens and positions, from offsets that people edit and from bytes of other releases.
//!
//! Promised: no panic. A token has one text, which reads back to it. What is read from an offset or from
//! bytes survives both forms: `decode(encode(p)) == p`, and `from_offset(to_offset(p)) == p` for a position
//! that came from an offset. (Members with broken numbers are not compared: JSON rounds them.)
//!
//! The first byte says how the others are read: as the text of a token, its document, an offset, the bytes
//! of a position, a change event, or a program that writes one.

use bytes::Bytes;
use serde_json::Value as Json;
use thalweg_core::position::{OffsetMap, Position, PositionCodec};
use thalweg_mongodb::position::{MongoCodec, MongoPosition, Positions};
use thalweg_mongodb::token::Token;

use super::program::Program;

/// One input.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice {
        0 => {
            if let Ok(text) = std::str::from_utf8(rest) {
                token(&Token::from_text(text));
            }
        }
        1 => {
            if let Ok(made) = Token::new(Bytes::copy_from_slice(rest)) {
                token(&made);
                position(MongoPosition::behind_batch(Bytes::copy_from_slice(rest)));
            }
        }
        2 => {
            if let Ok(map) = serde_json::from_slice::<OffsetMap>(rest) {
                offset(&map);
            }
        }
        3 => {
            let bytes = Position::new(Bytes::copy_from_slice(rest));
            let _ = MongoCodec.change_id(&bytes);
            let _ = MongoCodec.to_offset(&bytes);
            if let Some(decoded) = MongoPosition::decode(&bytes) {
                position(decoded);
            }
        }
        4 => event(Bytes::copy_from_slice(rest)),
        _ => event(Program(rest).document(0).into()),
    }
}

fn token(token: &Token) {
    let text = token.to_text();
    assert_eq!(&Token::from_text(&text), token);
    assert_eq!(Token::from_text(&text).to_text(), text);
    assert_eq!(token.to_document().as_bytes(), token.as_bytes());
    let _ = (token.time(), token.place(), token.is_from_invalidate());
}

fn event(event: Bytes) {
    let Some(made) = MongoPosition::of_event(&event) else { return };
    if let Some(made) = &made.token {
        token(made);
    }
    position(made.clone().begun());
    position(made);
}

/// There and back through the bytes.
fn position(position: MongoPosition) {
    let bytes = position.encode();
    let decoded = MongoPosition::decode(&bytes).expect("its own bytes");
    if is_whole(&decoded.to_offset()) {
        assert_eq!(decoded, position);
        assert_eq!(decoded.encode(), bytes);
    }
    let _ = (position.time(), MongoCodec.change_id(&bytes), position.transaction());
    let _ = MongoCodec.from_offset(&position.to_offset());
    if let Some(token) = &position.token {
        let time = position.time().map_or((0, 0), |t| (t.time, t.increment));
        let written = Positions::default().of_event(time, token.as_bytes(), None, Some(7), None, None);
        assert!(MongoPosition::decode(&written).is_some());
    }
}

fn offset(map: &OffsetMap) {
    let _ = MongoCodec.check_partition(map);
    let Ok(read) = MongoPosition::from_offset(map) else { return };
    let again = read.to_offset();
    if is_whole(&again) {
        assert_eq!(MongoPosition::from_offset(&again).as_ref(), Ok(&read));
    }
    position(read.clone().beside(Some(map)));
    position(read);
}

/// Whether no number in it has a fraction or an exponent.
fn is_whole(map: &OffsetMap) -> bool {
    fn whole(value: &Json) -> bool {
        match value {
            Json::Number(number) => !number.is_f64(),
            Json::Array(items) => items.iter().all(whole),
            Json::Object(members) => members.values().all(whole),
            _ => true,
        }
    }
    map.values().all(whole)
}
