//! Log sequence numbers.
//!
//! Ten bytes: virtual log file (4), block (4) and slot (2), each with its highest byte first, so that the order
//! of the bytes is that of the log ("SQL Server Transaction Log Architecture and Management Guide"). As text
//! they are `xxxxxxxx:xxxxxxxx:xxxx`; where there is none, the text is `NULL`.

use std::fmt;

/// What stands for a number that there is not.
pub const NULL: &str = "NULL";

/// A place in the log of a database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn([u8; 10]);

impl Lsn {
    /// Below every record of a log. `fn_cdc_get_min_lsn` says so for a capture instance that it does not know.
    pub const ZERO: Self = Self([0; 10]);

    /// Above every record of a log.
    pub const MAX: Self = Self([0xff; 10]);

    pub const fn new(bytes: [u8; 10]) -> Self {
        Self(bytes)
    }

    /// `None`: not ten bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub const fn as_bytes(&self) -> &[u8; 10] {
        &self.0
    }

    /// From twenty hexadecimal digits in either case, with or without colons anywhere between them. `None`: it
    /// is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = text.bytes().filter(|byte| *byte != b':');
        let mut digit = || char::from(digits.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut bytes = [0; 10];
        for byte in &mut bytes {
            *byte = digit()? << 4 | digit()?;
        }
        digits.next().is_none().then_some(Self(bytes))
    }

    /// The next number, as `fn_cdc_increment_lsn` has it. `None`: this is the last one.
    pub fn next(self) -> Option<Self> {
        let mut bytes = self.0;
        for byte in bytes.iter_mut().rev() {
            let (sum, carried) = byte.overflowing_add(1);
            *byte = sum;
            if !carried {
                return Some(Self(bytes));
            }
        }
        None
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if at == 4 || at == 8 {
                f.write_str(":")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text of a number that may be missing.
pub fn text(lsn: Option<Lsn>) -> String {
    lsn.map_or_else(|| NULL.to_owned(), |lsn| lsn.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "00000027:00000be8:0003";

    #[test]
    fn t_50_all_spellings_of_a_number_are_one() {
        let lsn = Lsn::parse(TEXT).unwrap();
        assert_eq!(lsn.to_string(), TEXT);
        for other in ["0000002700000BE80003", "00000027:00000BE8:0003", "0:0:0:0002700000be80003:"] {
            assert_eq!(Lsn::parse(other), Some(lsn), "{other}");
        }
        assert_eq!(text(Some(lsn)), TEXT);
        assert_eq!(text(None), "NULL");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for odd in ["", "NULL", ":", "00000027:00000be8:000", "00000027:00000be8:00033", "0000002g:00000be8:0003"] {
            assert_eq!(Lsn::parse(odd), None, "{odd}");
        }
        assert_eq!(Lsn::parse("+0000027:00000be8:0003"), None);
        assert_eq!(Lsn::parse("0000002\u{0661}:00000be8:0003"), None);
        assert_eq!((Lsn::from_slice(&[0; 9]), Lsn::from_slice(&[0; 11])), (None, None));
    }

    #[test]
    fn the_next_number_carries() {
        let next = |text: &str| Lsn::parse(text).unwrap().next().map(|lsn| lsn.to_string());
        assert_eq!(next(TEXT).unwrap(), "00000027:00000be8:0004");
        assert_eq!(next("00000027:00000be8:ffff").unwrap(), "00000027:00000be9:0000");
        assert_eq!(next("00000027:ffffffff:ffff").unwrap(), "00000028:00000000:0000");
        assert_eq!(next("ffffffff:ffffffff:ffff"), None);
        assert_eq!(Lsn::ZERO.next().unwrap().to_string(), "00000000:00000000:0001");
    }

    #[test]
    fn none_is_below_every_number() {
        assert!(None < Some(Lsn::ZERO));
        assert!(Some(Lsn::ZERO) < Some(Lsn::new([255; 10])));
        assert!(Lsn::new([0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0]) > Lsn::new([0, 0, 0, 0x7f, 255, 255, 255, 255, 255, 255]));
    }

    proptest! {
        #[test]
        fn text_and_number_agree(bytes: [u8; 10], other: [u8; 10]) {
            let lsn = Lsn::new(bytes);
            prop_assert_eq!(Lsn::parse(&lsn.to_string()), Some(lsn));
            // Texts rise as numbers do, which those who sort stored positions rely on.
            prop_assert_eq!(lsn.cmp(&Lsn::new(other)), lsn.to_string().cmp(&Lsn::new(other).to_string()));
        }

        #[test]
        fn the_next_number_is_one_more(bytes: [u8; 10]) {
            let number = |lsn: Lsn| lsn.as_bytes().iter().fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
            if let Some(next) = Lsn::new(bytes).next() {
                prop_assert_eq!(number(next), number(Lsn::new(bytes)) + 1);
            }
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "\\PC{0,40}") {
            if let Some(lsn) = Lsn::parse(&text) {
                prop_assert_eq!(lsn.to_string().replace(':', ""), text.replace(':', "").to_lowercase());
            }
        }
    }
}
