//! LOGIN7: who connects, and what the client can do.
//!
//! [MS-TDS] "LOGIN7". Everything that the server uses is read; places of texts are checked, their
//! order in the message is free.

use super::bytes::{Malformed, Reader, utf16};
use super::packet::{DEFAULT_SIZE, LARGEST_SIZE, SMALLEST_SIZE};
use crate::session::Login;

/// Version from which on a client reads `date`, `time`, `datetime2` and rows with a NULL bitmap (TDS 7.3.B).
const OLDEST_VERSION: u32 = 0x730b_0003;
/// TDS 7.4.
pub(crate) const NEWEST_VERSION: u32 = 0x7400_0004;
/// TDS 8.0.
const STRICT_VERSION: u32 = 0x0800_0000;

/// The part of fixed length.
const FIXED: usize = 94;

const FATAL_LANGUAGE: u8 = 0x01;
const INTEGRATED: u8 = 0x80;
const READ_ONLY: u8 = 0x20;
const EXTENSION: u8 = 0x10;

pub(crate) mod feature {
    //! Numbers of feature extensions that the server knows of.
    pub(crate) const FEDERATED: u8 = 0x02;
    pub(crate) const UTF8: u8 = 0x0a;
    pub(super) const END: u8 = 0xff;
}

/// A client's LOGIN7.
#[derive(Debug, Clone, Default)]
pub(crate) struct Login7 {
    pub(crate) login: Login,
    /// What both sides speak.
    pub(crate) version: u32,
    /// Bytes of packets from the answer on.
    pub(crate) packet_size: u16,
    /// Empty: the server's.
    pub(crate) language: String,
    /// The login fails if the language cannot be had.
    pub(crate) language_or_nothing: bool,
    /// A login through Windows or an identity provider, which have no password here.
    pub(crate) integrated: bool,
    /// Numbers of the extensions that the client asks for.
    pub(crate) features: Vec<u8>,
}

impl Login7 {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fixed = Reader::new(bytes);
        let length = fixed.u32()?;
        if usize::try_from(length) != Ok(bytes.len()) || bytes.len() < FIXED {
            let text = format!("The login message says it has {length} bytes, it has {}.", bytes.len());
            return Err(Malformed::stream(text));
        }
        let version = version(fixed.u32()?)?;
        let packet_size = packet_size(fixed.u32()?);
        // Version and process id of the client, connection id.
        fixed.take(12)?;
        let [_, flags_2, type_flags, flags_3] = fixed.array()?;
        // Time zone and LCID.
        fixed.take(8)?;
        let mut place = || Ok((usize::from(fixed.u16()?), usize::from(fixed.u16()?)));
        let host = text(bytes, place()?, "the client's name")?;
        let user = text(bytes, place()?, "the user")?;
        let password = password(bytes, place()?)?;
        let application = text(bytes, place()?, "the application")?;
        let _server = place()?;
        let (extension, _) = place()?;
        let _library = place()?;
        let language = text(bytes, place()?, "the language")?;
        let database = text(bytes, place()?, "the database")?;
        let features = if flags_3 & EXTENSION == 0 { Vec::new() } else { features(bytes, extension)? };
        Ok(Self {
            login: Login { user, password, database, application, host, read_only: type_flags & READ_ONLY != 0 },
            version,
            packet_size,
            language,
            language_or_nothing: flags_2 & FATAL_LANGUAGE != 0,
            integrated: flags_2 & INTEGRATED != 0 || features.contains(&feature::FEDERATED),
            features,
        })
    }
}

fn version(asked: u32) -> Result<u32, Malformed> {
    match asked {
        STRICT_VERSION => Ok(STRICT_VERSION),
        OLDEST_VERSION.. => Ok(asked.min(NEWEST_VERSION)),
        _ => Err(Malformed {
            number: 17832,
            text: format!(
                "The client speaks TDS version 0x{asked:08X}. This server speaks 7.3.B (0x{OLDEST_VERSION:08X}) and later; \
                 set the client to 7.4."
            ),
        }),
    }
}

/// 0 leaves the size to the server.
fn packet_size(asked: u32) -> u16 {
    match u16::try_from(asked) {
        Ok(0) => DEFAULT_SIZE,
        Ok(size) => size.clamp(SMALLEST_SIZE, LARGEST_SIZE),
        Err(_) => LARGEST_SIZE,
    }
}

/// Bytes at a place that the fixed part gives as offset and number of UTF-16 code units.
fn part<'a>(bytes: &'a [u8], (at, units): (usize, usize), what: &str) -> Result<&'a [u8], Malformed> {
    if units == 0 {
        return Ok(&[]);
    }
    bytes.get(at..at + 2 * units).ok_or_else(|| {
        Malformed::stream(format!("{units} characters at {at} of the login message, {what}, lie outside of it."))
    })
}

fn text(bytes: &[u8], place: (usize, usize), what: &str) -> Result<String, Malformed> {
    utf16(part(bytes, place, what)?)
}

/// The halves of each byte are swapped, then it is XORed with 0xA5: undone in the other order.
fn password(bytes: &[u8], place: (usize, usize)) -> Result<String, Malformed> {
    let plain: Vec<u8> = part(bytes, place, "the password")?.iter().map(|b| (b ^ 0xa5).rotate_left(4)).collect();
    utf16(&plain)
}

/// The extension's place holds where the list of features begins.
fn features(bytes: &[u8], extension: usize) -> Result<Vec<u8>, Malformed> {
    let missing = || Malformed::stream("The login message has its feature extensions outside of it.");
    let at = Reader::new(bytes.get(extension..).ok_or_else(missing)?).u32()?;
    let at = usize::try_from(at).map_err(|_| missing())?;
    let mut list = Reader::new(bytes.get(at..).ok_or_else(missing)?);
    let mut features = Vec::new();
    loop {
        let feature = list.u8()?;
        if feature == feature::END {
            return Ok(features);
        }
        let length = usize::try_from(list.u32()?).map_err(|_| missing())?;
        list.take(length)?;
        features.push(feature);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A LOGIN7 with these texts and features.
    pub(crate) fn login7(user: &str, password: &str, database: &str, flags: [u8; 4], features: &[u8]) -> Vec<u8> {
        let texts = ["client", user, password, "app", "server", "", "library", "", database];
        let (mut places, mut data) = (Vec::new(), Vec::new());
        for (number, text) in texts.iter().enumerate() {
            let units: Vec<u16> = text.encode_utf16().collect();
            places.extend(u16::try_from(FIXED + data.len()).unwrap().to_le_bytes());
            let count = if number == 5 { 4 } else { units.len() };
            places.extend(u16::try_from(count).unwrap().to_le_bytes());
            match number {
                2 => data.extend(units.iter().flat_map(|u| u.to_le_bytes()).map(|b| b.rotate_left(4) ^ 0xa5)),
                5 => data.extend(0_u32.to_le_bytes()),
                _ => data.extend(units.iter().flat_map(|u| u.to_le_bytes())),
            }
        }
        let extension = usize::from(u16::from_le_bytes([places[20], places[21]])) - FIXED;
        let list = u32::try_from(FIXED + data.len()).unwrap();
        data[extension..extension + 4].copy_from_slice(&list.to_le_bytes());
        data.extend_from_slice(features);
        let mut message = Vec::new();
        message.extend(u32::try_from(FIXED + data.len()).unwrap().to_le_bytes());
        message.extend(NEWEST_VERSION.to_le_bytes());
        message.extend(8000_u32.to_le_bytes());
        message.extend([0; 12]);
        message.extend(flags);
        message.extend([0; 8]);
        message.extend(places);
        message.resize(FIXED, 0);
        message.extend(data);
        message
    }

    #[test]
    fn a_login_is_read_with_its_password_and_features() {
        let features = [feature::UTF8, 1, 0, 0, 0, 1, 0x04, 1, 0, 0, 0, 1, feature::END];
        let read = Login7::parse(&login7("sa", "pä$$wörd", "sales", [0, 0, READ_ONLY, EXTENSION], &features)).unwrap();
        assert_eq!(read.login.user, "sa");
        assert_eq!(read.login.password, "pä$$wörd");
        assert_eq!(read.login.database, "sales");
        assert_eq!(read.login.application, "app");
        assert_eq!(read.login.host, "client");
        assert!(read.login.read_only);
        assert_eq!(read.packet_size, 8000);
        assert_eq!(read.features, [feature::UTF8, 0x04]);
        assert!(!read.integrated);
    }

    #[test]
    fn a_login_whose_texts_lie_outside_of_it_is_refused() {
        let mut message = login7("sa", "secret", "", [0; 4], &[]);
        message[40..42].copy_from_slice(&9000_u16.to_le_bytes());
        let error = Login7::parse(&message).unwrap_err();
        assert!(error.text.contains("the user"), "{error}");
        message.truncate(50);
        assert!(Login7::parse(&message).is_err());
    }

    #[test]
    fn packet_sizes_stay_in_their_bounds_and_old_clients_are_refused() {
        assert_eq!(packet_size(0), DEFAULT_SIZE);
        assert_eq!(packet_size(16), SMALLEST_SIZE);
        assert_eq!(packet_size(70_000), LARGEST_SIZE);
        assert_eq!(version(0x7400_0005), Ok(NEWEST_VERSION));
        assert_eq!(version(0x7209_0002).unwrap_err().number, 17832);
    }
}
