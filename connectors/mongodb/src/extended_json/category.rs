//! Which characters a string shows as they are, and which as `\uXXXX`.
//!
//! The Java driver looks at single UTF-16 units: letters (without modifiers), numbers, blanks,
//! punctuation and symbols are shown. Everything else is escaped, and so is every character beyond
//! the basic plane, whose units are surrogates.

use std::sync::LazyLock;

use unicode_properties::{GeneralCategory as G, UnicodeGeneralCategory};

/// One bit per character of the basic plane.
pub(super) struct Shown([u64; 1024]);

static SHOWN: LazyLock<Box<Shown>> = LazyLock::new(|| {
    let mut shown = Box::new(Shown([0; 1024]));
    for code in 0..=u16::MAX {
        if char::from_u32(u32::from(code)).is_some_and(is_shown) {
            shown.0[usize::from(code >> 6)] |= 1 << (code & 63);
        }
    }
    shown
});

fn is_shown(c: char) -> bool {
    matches!(
        c.general_category(),
        G::UppercaseLetter
            | G::LowercaseLetter
            | G::TitlecaseLetter
            | G::OtherLetter
            | G::DecimalNumber
            | G::LetterNumber
            | G::OtherNumber
            | G::SpaceSeparator
            | G::ConnectorPunctuation
            | G::DashPunctuation
            | G::OpenPunctuation
            | G::ClosePunctuation
            | G::InitialPunctuation
            | G::FinalPunctuation
            | G::OtherPunctuation
            | G::MathSymbol
            | G::CurrencySymbol
            | G::ModifierSymbol
            | G::OtherSymbol
    )
}

impl Shown {
    /// The table; made on first use.
    pub(super) fn table() -> &'static Self {
        &SHOWN
    }

    pub(super) fn contains(&self, unit: u16) -> bool {
        self.0[usize::from(unit >> 6)] >> (unit & 63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_escaped() {
        let table = Shown::table();
        for c in "aZ09 \u{a0}é中_-([{«»!+$^©\u{fffd}/<'ǅⅫ²".chars() {
            assert!(table.contains(c as u16), "{c}");
        }
        // Control, format, combining marks, modifier letters, separators, private use, unassigned.
        for c in "\u{0}\u{1f}\u{7f}\u{ad}\u{200b}\u{301}\u{903}\u{20dd}\u{2b0}\u{2028}\u{2029}\u{e000}\u{378}".chars() {
            assert!(!table.contains(c as u16), "{:x}", c as u32);
        }
        assert!((0xD800..=0xDFFF).all(|unit| !table.contains(unit)));
    }
}
