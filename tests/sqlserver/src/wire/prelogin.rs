//! The exchange before the login: versions, whether to encrypt, which instance.
//!
//! [MS-TDS] "PRELOGIN".

use super::bytes::{Malformed, Reader};

const VERSION: u8 = 0x00;
const ENCRYPTION: u8 = 0x01;
const INSTANCE: u8 = 0x02;
const THREAD: u8 = 0x03;
const MARS: u8 = 0x04;
const FEDERATED: u8 = 0x06;
const TERMINATOR: u8 = 0xff;

/// How the server wants connections to be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// The server has no certificate: nothing is encrypted.
    NotSupported,
    /// As the client asks; without its asking, only its login is encrypted.
    #[default]
    Offered,
    /// Everything is encrypted ("Force Encryption").
    Required,
    /// Clients speak TLS from the first byte on, as TDS 8.0 has it ("Force Strict Encryption").
    Strict,
}

/// Values of the encryption option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Off = 0,
    On = 1,
    NotSupported = 2,
    Required = 3,
}

/// What is encrypted from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    Nothing,
    Login,
    Everything,
    /// The client cannot do what the server wants.
    Refused,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prelogin {
    pub(crate) encryption: Level,
    /// Instance that the client wants; empty: any.
    pub(crate) instance: String,
    mars: bool,
    federated: bool,
}

impl Prelogin {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut options = Reader::new(bytes);
        let mut said = Self { encryption: Level::NotSupported, instance: String::new(), mars: false, federated: false };
        loop {
            let option = options.u8()?;
            if option == TERMINATOR {
                return Ok(said);
            }
            let (at, length) = (usize::from(options.u16_be()?), usize::from(options.u16_be()?));
            let data = bytes.get(at..at + length).ok_or_else(|| {
                Malformed::stream(format!("Option 0x{option:02X} of the pre-login message lies outside of it."))
            })?;
            match (option, data) {
                // Bit 0x80 says that the client has a certificate, which is not asked for.
                (ENCRYPTION, [level, ..]) => said.encryption = level_of(*level & 0x7f)?,
                (INSTANCE, name) => {
                    let name = name.split(|b| *b == 0).next().unwrap_or_default();
                    said.instance = String::from_utf8_lossy(name).into_owned();
                }
                (MARS, [mars, ..]) => said.mars = *mars != 0,
                (FEDERATED, _) => said.federated = true,
                _ => {}
            }
        }
    }

    /// What the server says to it and what follows from that, by the tables of "PRELOGIN" under
    /// "Encryption". On a strict connection TLS is there already.
    pub(crate) fn agree(&self, wanted: Encryption) -> (Level, Agreed) {
        match (wanted, self.encryption) {
            (Encryption::NotSupported, Level::Off | Level::NotSupported) => (Level::NotSupported, Agreed::Nothing),
            (Encryption::NotSupported, _) => (Level::NotSupported, Agreed::Refused),
            (Encryption::Offered, Level::Off) => (Level::Off, Agreed::Login),
            (Encryption::Offered, Level::NotSupported) => (Level::NotSupported, Agreed::Nothing),
            (Encryption::Offered, _) => (Level::On, Agreed::Everything),
            (Encryption::Required, Level::NotSupported) => (Level::Required, Agreed::Refused),
            (Encryption::Required, Level::Off) => (Level::Required, Agreed::Everything),
            (Encryption::Required, _) => (Level::On, Agreed::Everything),
            (Encryption::Strict, _) => (Level::On, Agreed::Everything),
        }
    }

    /// The answer's bytes. Several results at a time (MARS) and tokens of an identity provider are declined.
    pub(crate) fn answer(&self, version: (u8, u8, u16), level: Level, instance: &str) -> Vec<u8> {
        let [build_high, build_low] = version.2.to_be_bytes();
        // An empty text says that the instance is the right one, another that it is not.
        let wrong = !self.instance.is_empty() && !is_instance(&self.instance, instance);
        let mut options: Vec<(u8, Vec<u8>)> = vec![
            (VERSION, vec![version.0, version.1, build_high, build_low, 0, 0]),
            (ENCRYPTION, vec![level as u8]),
            (INSTANCE, vec![u8::from(wrong)]),
            (THREAD, Vec::new()),
            (MARS, vec![0]),
        ];
        if self.federated {
            options.push((FEDERATED, vec![0]));
        }
        let mut at = options.len() * 5 + 1;
        let (mut head, mut data) = (Vec::new(), Vec::new());
        for (option, value) in options {
            head.push(option);
            // A few dozen bytes in all.
            head.extend_from_slice(&u16::try_from(at).unwrap_or(u16::MAX).to_be_bytes());
            head.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
            at += value.len();
            data.extend_from_slice(&value);
        }
        head.push(TERMINATOR);
        head.extend_from_slice(&data);
        head
    }
}

/// Whether a client that asks for `asked` means the instance `own`; the default instance has two names.
fn is_instance(asked: &str, own: &str) -> bool {
    let name = |text: &str| if text.is_empty() { "MSSQLSERVER".to_owned() } else { text.to_ascii_uppercase() };
    name(asked) == name(own)
}

fn level_of(byte: u8) -> Result<Level, Malformed> {
    Ok(match byte {
        0 => Level::Off,
        1 => Level::On,
        2 => Level::NotSupported,
        3 => Level::Required,
        other => {
            return Err(Malformed::stream(format!("The pre-login message asks for encryption 0x{other:02X}.")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's message in "Pre-Login Request" of [MS-TDS], section "Protocol Examples", without its header.
    const EXAMPLE: &[u8] = &[
        0x00, 0x00, 0x1A, 0x00, 0x06, 0x01, 0x00, 0x20, 0x00, 0x01, 0x02, 0x00, 0x21, 0x00, 0x01, 0x03, 0x00, 0x22,
        0x00, 0x04, 0x04, 0x00, 0x26, 0x00, 0x01, 0xFF, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0xB8, 0x0D,
        0x00, 0x00, 0x01,
    ];

    #[test]
    fn the_example_of_the_specification_is_read() {
        let said = Prelogin::parse(EXAMPLE).unwrap();
        let expected = Prelogin { encryption: Level::On, instance: String::new(), mars: true, federated: false };
        assert_eq!(said, expected);
    }

    #[test]
    fn the_answer_says_what_the_server_is_and_agrees_to() {
        let mut said = Prelogin::parse(EXAMPLE).unwrap();
        said.instance = "other".into();
        let answer = said.answer((16, 0, 1000), Level::On, "");
        let head = [0, 0, 26, 0, 6, 1, 0, 32, 0, 1, 2, 0, 33, 0, 1, 3, 0, 34, 0, 0, 4, 0, 34, 0, 1, 0xff];
        assert_eq!(answer[..26], head);
        assert_eq!(answer[26..], [16, 0, 3, 0xe8, 0, 0, Level::On as u8, 1, 0]);
    }

    #[test]
    fn an_option_outside_of_the_message_is_refused() {
        let error = Prelogin::parse(&[1, 0, 6, 0, 9, 0xff, 0]).unwrap_err();
        assert!(error.text.contains("Option 0x01"), "{error}");
        assert!(Prelogin::parse(&[1, 0]).is_err());
    }

    #[test]
    fn the_default_instance_has_two_names() {
        assert!(is_instance("MSSQLServer", ""));
        assert!(is_instance("sales", "SALES"));
        assert!(!is_instance("sales", ""));
    }
}
