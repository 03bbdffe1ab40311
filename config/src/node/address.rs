//! Host and port as written in options.

use std::fmt;
use std::str::FromStr;

/// `host:port`; an IPv6 host stands in brackets when written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Empty: all interfaces.
    pub host: String,
    pub port: u16,
}

impl Address {
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Whether it can only be listened at: all interfaces.
    pub fn is_wildcard(&self) -> bool {
        matches!(self.host.as_str(), "" | "0.0.0.0" | "::")
    }

    /// The host to bind to.
    pub fn bind_host(&self) -> &str {
        if self.host.is_empty() { "0.0.0.0" } else { &self.host }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Address {
    /// What is wrong, without the text itself.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.trim().rsplit_once(':').ok_or("it has no port")?;
        let number = port.parse::<u16>().map_err(|_| format!("'{port}' is no port; ports are numbers up to 65535"))?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or("its bracket is not closed")?,
            None if host.contains(':') => return Err("an IPv6 address stands in brackets".to_owned()),
            None => host,
        };
        if host.contains(['/', '[', ']', '@', '?']) || host.contains(char::is_whitespace) {
            return Err(format!("'{host}' is no host name"));
        }
        Ok(Self::new(host, number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Where the REST interface listens: `http://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub scheme: Scheme,
    pub address: Address,
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.address)
    }
}

impl FromStr for Listener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, address) = text.trim().split_once("://").ok_or("it has no scheme")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(format!("'{other}' is not one of http, https")),
        };
        Ok(Self { scheme, address: address.trim_end_matches('/').parse()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses() {
        for (text, host, port, wildcard) in [
            ("h:1", "h", 1, false),
            (" :8083", "", 8083, true),
            ("0.0.0.0:0", "0.0.0.0", 0, true),
            ("[::1]:65535", "::1", 65535, false),
            ("[::]:1", "::", 1, true),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port, address.is_wildcard()), (host, port, wildcard));
        }
        for text in ["h", "h:", "h:65536", "h:-1", "h:x", "::1:1", "[::1:1", "a b:1", "http://h:1", "u@h:1", ""] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn listeners() {
        let listener: Listener = " HTTPS://h:8443/ ".parse().unwrap();
        assert_eq!((listener.scheme, listener.to_string().as_str()), (Scheme::Https, "https://h:8443"));
        assert_eq!("http://:8083".parse::<Listener>().unwrap().address.bind_host(), "0.0.0.0");
        for text in ["h:1", "ftp://h:1", "http://h", "http://h:1/path"] {
            assert!(text.parse::<Listener>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(host in "[a-z0-9.-]{0,10}|[0-9a-f:]{2,10}", port in any::<u16>()) {
            let address = Address::new(host, port);
            prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "[h:/\\[\\]0-9 é]{0,12}") {
            let _ = text.parse::<Listener>();
            let _ = text.parse::<Address>();
        }
    }
}
