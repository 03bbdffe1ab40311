//! Texts as salted digests (`column.mask.hash.*`).
//!
//! Invariant: equal texts, salts and algorithms have equal results, on every node and in every version: users
//! join over them. The salt is never shown.

use std::fmt;

use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

/// Which bytes of a text are digested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Those that Java's object serialisation has for a string.
    Serialized,
    /// Its UTF-8.
    Plain,
}

/// Begins a digest.
type Algorithm = fn() -> Box<dyn DynDigest>;

/// Names of algorithms as Java's `MessageDigest` has them; case does not count.
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("MD5", || Box::new(Md5::default())),
    ("SHA-1", || Box::new(Sha1::default())),
    ("SHA1", || Box::new(Sha1::default())),
    ("SHA", || Box::new(Sha1::default())),
    ("SHA-224", || Box::new(Sha224::default())),
    ("SHA-256", || Box::new(Sha256::default())),
    ("SHA-384", || Box::new(Sha384::default())),
    ("SHA-512", || Box::new(Sha512::default())),
    ("SHA-512/224", || Box::new(Sha512_224::default())),
    ("SHA-512/256", || Box::new(Sha512_256::default())),
];

#[derive(Clone)]
pub(super) struct SaltedDigest {
    algorithm: Algorithm,
    form: Form,
    salt: Box<str>,
}

impl fmt::Debug for SaltedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaltedDigest").field("form", &self.form).finish_non_exhaustive()
    }
}

impl SaltedDigest {
    /// # Errors
    /// The text about an algorithm that is not known.
    pub(super) fn new(algorithm: &str, form: Form, salt: &str) -> Result<Self, String> {
        let known = ALGORITHMS.iter().find(|(name, _)| name.eq_ignore_ascii_case(algorithm));
        let Some((_, algorithm)) = known else {
            let names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
            return Err(format!("'{algorithm}' is no algorithm for digests; known are {}", names.join(", ")));
        };
        Ok(Self { algorithm: *algorithm, form, salt: salt.into() })
    }

    /// Lower-case hexadecimal digits.
    pub(super) fn hex(&self, text: &str) -> String {
        let mut digest = (self.algorithm)();
        digest.update(self.salt.as_bytes());
        match self.form {
            Form::Plain => digest.update(text.as_bytes()),
            Form::Serialized => digest.update(&serialized(text)),
        }
        crate::position::hex(&digest.finalize())
    }
}

/// A string in Java's object stream: header, type, length, modified UTF-8 (Java Object Serialization
/// Specification, chapter 6).
fn serialized(text: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let low = |bits: u16| 0x80 | (bits & 0x3F) as u8;
        match unit {
            1..=0x7F => body.push(unit as u8),
            0 | 0x80..=0x7FF => body.extend([0xC0 | (unit >> 6) as u8, low(unit)]),
            _ => body.extend([0xE0 | (unit >> 12) as u8, low(unit >> 6), low(unit)]),
        }
    }
    let mut out = vec![0xAC, 0xED, 0x00, 0x05];
    match u16::try_from(body.len()) {
        Ok(length) => {
            out.push(0x74);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(0x7C);
            out.extend((body.len() as u64).to_be_bytes());
        }
    }
    out.append(&mut body);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn hex(algorithm: &str, form: Form, salt: &str, text: &str) -> String {
        SaltedDigest::new(algorithm, form, salt).unwrap().hex(text)
    }

    #[test]
    fn digests_as_debezium_has_them() {
        assert_eq!(
            hex("SHA-256", Form::Serialized, "CzQMA0cB5K", "some_name"),
            "3b225d0696535d66f2c0fb2e36b012c520d396af3dd8f18330b9c9cd23ca714e"
        );
        assert_eq!(
            hex("sha-256", Form::Plain, "CzQMA0cB5K", "some_name"),
            "c694718f0d951ba89c4143e0fd3b9cc1d7b6bb5ca2a0b3d485e2bce3e1e81612"
        );
        assert_eq!(
            hex("SHA-256", Form::Plain, "pepper7", "alpha"),
            "b8a5b85e0323c5301e57b02996c1fb8fb581a698967903c7ea7d17ce1c4052c2"
        );
    }

    /// The digests of "abc" that the standards give.
    #[test]
    fn every_algorithm() {
        for (algorithm, expected) in [
            ("MD5", "900150983cd24fb0d6963f7d28e17f72"),
            ("SHA-1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("SHA1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("SHA", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("SHA-224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            ("SHA-256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "SHA-384",
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                "SHA-512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            ("SHA-512/224", "4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa"),
            ("SHA-512/256", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
        ] {
            assert_eq!(hex(algorithm, Form::Plain, "ab", "c"), expected, "{algorithm}");
        }
        let error = SaltedDigest::new("CRC32", Form::Plain, "").unwrap_err();
        assert!(error.starts_with("'CRC32' is no algorithm for digests; known are MD5, SHA-1"), "{error}");
        assert!(!format!("{:?}", SaltedDigest::new("MD5", Form::Plain, "pepper").unwrap()).contains("pepper"));
    }

    #[test]
    fn strings_as_java_serialises_them() {
        assert_eq!(serialized("ab"), b"\xAC\xED\x00\x05\x74\x00\x02ab");
        assert_eq!(serialized("\0é漢"), b"\xAC\xED\x00\x05\x74\x00\x07\xC0\x80\xC3\xA9\xE6\xBC\xA2");
        assert_eq!(serialized("😀")[5..], *b"\x00\x06\xED\xA0\xBD\xED\xB8\x80");
        let (longest, longer) = (serialized(&"x".repeat(65_535)), serialized(&"x".repeat(65_536)));
        assert_eq!(longest[4..8], [0x74, 0xFF, 0xFF, b'x']);
        assert_eq!(longer[4..14], [0x7C, 0, 0, 0, 0, 0, 1, 0, 0, b'x']);
    }
}
