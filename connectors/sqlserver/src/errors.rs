//! What failures of the client and numbers of the server mean for a database.
//!
//! One place sorts them: [`Fault::class`] for the code that decides what to do next, [`Fault::error`] for the
//! words that an operator reads. While a task runs, everything that the server says is taken for something that
//! may pass, as Debezium does: rights are granted and databases come back without anybody touching the connector.
//! What must not wait is refused when a configuration is checked.

use std::fmt;
use std::time::Duration;

use thalweg_core::{Error, ErrorKind, Phase};
use tiberius::error::{Error as ClientError, TokenError};

/// Why a statement, or the way to one, failed.
#[derive(Debug, Clone)]
pub enum Fault {
    Client(ClientError),
    /// The server took longer than `database.query.timeout.ms`.
    Statement(Duration),
    /// No connection came about within `driver.loginTimeout`.
    Login(Duration),
    /// The server sent us from one address to the next without end.
    Routing,
    /// The connection was lost inside of a transaction.
    Transaction,
    /// Certificates to trust cannot be read; the text names the property.
    TrustStore(String),
    /// An answer that is not the one that was asked for.
    Answer(String),
    /// Already worded: a list of the configuration that cannot be decided for a name, a history that cannot be
    /// written.
    Final(Error),
    /// Changes that do not fit together: reading them again would not help.
    Damaged(String),
}

/// Advice where the database is not enabled.
const NOT_ENABLED: &str = "run EXEC sys.sp_cdc_enable_db in the database, and sys.sp_cdc_enable_table for its tables";

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The connection is gone.
    Connect,
    Timeout,
    /// Another session was in the way: a deadlock, a lock, a conflict of versions.
    Busy,
    /// The database does not allow snapshot isolation (3952).
    IsolationOff,
    /// A function for changes was asked for an interval that it does not have (313).
    Interval,
    /// An object does not exist, or must not be seen (208).
    NoObject,
    /// Change data capture is not enabled (22901).
    NotEnabled,
    Permission,
    Credentials,
    NoDatabase,
    /// The database or the service is away for a while.
    Away,
    /// The connector's configuration cannot be used.
    Config,
    /// What was read contradicts itself.
    Damaged,
    Other,
}

impl Class {
    /// By the number of the server's message ("Database Engine events and errors").
    const fn of(number: u32) -> Self {
        match number {
            596 => Self::Connect,
            1205 | 1222 | 3960 => Self::Busy,
            3952 => Self::IsolationOff,
            313 => Self::Interval,
            208 => Self::NoObject,
            22901 => Self::NotEnabled,
            229 | 230 | 262 | 297 | 300 | 916 => Self::Permission,
            18456 | 18470 => Self::Credentials,
            911 | 4060 => Self::NoDatabase,
            942 | 945 | 976 | 978 | 983 | 10928 | 10929 | 40197 | 40501 | 40613 | 49918..=49920 => Self::Away,
            _ => Self::Other,
        }
    }
}

impl Fault {
    /// What the server itself said.
    pub fn said(&self) -> Option<&TokenError> {
        match self {
            Self::Client(ClientError::Server(said)) => Some(said),
            _ => None,
        }
    }

    pub fn class(&self) -> Class {
        match self {
            Self::Client(ClientError::Server(said)) => match Class::of(said.code()) {
                // From severity 20 on the server ends the connection.
                Class::Other if said.class() >= 20 => Class::Connect,
                class => class,
            },
            Self::Client(ClientError::Io { .. } | ClientError::Tls(_)) | Self::Routing | Self::Transaction => {
                Class::Connect
            }
            Self::Statement(_) | Self::Login(_) => Class::Timeout,
            Self::TrustStore(_) | Self::Final(_) => Class::Config,
            Self::Damaged(_) => Class::Damaged,
            Self::Client(_) | Self::Answer(_) => Class::Other,
        }
    }

    /// Whether the connection can be used on: the server answered, in full and with less than severity 20.
    pub fn leaves_connection(&self) -> bool {
        match self {
            Self::Client(ClientError::Server(said)) => said.class() < 20 && said.code() != 596,
            Self::Answer(_) | Self::Damaged(_) | Self::Final(_) => true,
            Self::Client(_) | Self::Statement(_) | Self::Login(_) => false,
            Self::Routing | Self::Transaction | Self::TrustStore(_) => false,
        }
    }

    /// The error as a task reports it. `about`: the server or the database.
    pub fn error(&self, about: &str, phase: Phase) -> Error {
        if let Self::Final(error) = self {
            return error.clone();
        }
        let (class, said) = (self.class(), self.to_string());
        let (kind, message) = match class {
            Class::Connect => (ErrorKind::Connect, format!("the connection to {about} failed: {said}")),
            Class::Timeout => (ErrorKind::Timeout, format!("{about} did not answer in time: {said}")),
            Class::Config => (ErrorKind::Config, said),
            Class::Damaged => (ErrorKind::Codec, format!("{about}: {said}")),
            Class::Credentials => (ErrorKind::SourceBusy, format!("{about} does not accept the login: {said}")),
            Class::Permission => (ErrorKind::SourceBusy, format!("the user lacks a right in {about}: {said}")),
            Class::NoObject if said.contains("cdc.") => {
                (ErrorKind::SourceBusy, format!("change data capture is not enabled in {about}: {said}"))
            }
            _ => (ErrorKind::SourceBusy, format!("{about} answered with an error: {said}")),
        };
        let error = Error::new(kind, phase, message);
        match self.advice(class) {
            Some(advice) => error.advise(advice),
            None => error,
        }
    }

    /// The next step, where it can be said better than by the kind alone.
    fn advice(&self, class: Class) -> Option<&'static str> {
        Some(match class {
            Class::Connect if matches!(self, Self::Client(ClientError::Tls(_))) => {
                "check the certificates: driver.trustStore or driver.serverCertificate must hold the authority of the \
                 server's certificate, and the certificate must name the host (driver.hostNameInCertificate)"
            }
            Class::IsolationOff => {
                "run ALTER DATABASE <name> SET ALLOW_SNAPSHOT_ISOLATION ON, or choose another snapshot.isolation.mode"
            }
            Class::Interval => {
                "the changes asked for are usually cleaned up: set snapshot.mode=when_needed to take a new snapshot"
            }
            Class::NotEnabled => NOT_ENABLED,
            Class::NoObject if self.to_string().contains("cdc.") => NOT_ENABLED,
            Class::Permission => {
                "grant SELECT on the schema cdc and on the captured tables, and add the user to the role of the capture \
                 instances; the task retries by itself"
            }
            Class::Credentials => "check database.user and database.password; the task retries by itself",
            Class::NoDatabase => {
                "check database.names, and that the user may enter the database; the task retries by itself"
            }
            Class::Timeout if matches!(self, Self::Statement(_)) => {
                "raise database.query.timeout.ms if the statement needs so long, else look at the load of the server"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(ClientError::Server(said)) => write!(f, "error {}: {}", said.code(), said.message()),
            Self::Client(error) => error.fmt(f),
            Self::Statement(limit) => write!(f, "The query has timed out. It took more than {} ms.", limit.as_millis()),
            Self::Login(limit) => write!(f, "no connection came about within {} ms", limit.as_millis()),
            Self::Routing => f.write_str("the server names another address each time, and none of them serves"),
            Self::Transaction => f.write_str("it was lost before the transaction ended"),
            Self::Final(error) => error.fmt(f),
            Self::TrustStore(text) | Self::Answer(text) | Self::Damaged(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_core::Policy;
    use tiberius::error::IoErrorKind;

    use super::*;

    #[test]
    fn numbers_have_their_class() {
        for (class, numbers) in [
            (Class::Connect, &[596][..]),
            (Class::Busy, &[1205, 1222, 3960]),
            (Class::IsolationOff, &[3952]),
            (Class::Interval, &[313]),
            (Class::NoObject, &[208]),
            (Class::NotEnabled, &[22901]),
            (Class::Permission, &[229, 230, 262, 297, 300, 916]),
            (Class::Credentials, &[18456, 18470]),
            (Class::NoDatabase, &[911, 4060]),
            (Class::Away, &[942, 945, 976, 978, 983, 10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920]),
            (Class::Other, &[102, 2627, 50000]),
        ] {
            for number in numbers {
                assert_eq!(Class::of(*number), class, "{number}");
            }
        }
    }

    fn io() -> Fault {
        Fault::Client(ClientError::Io { kind: IoErrorKind::ConnectionReset, message: "reset".into() })
    }

    #[test]
    fn whatever_may_pass_is_tried_again() {
        let faults = [
            io(),
            Fault::Client(ClientError::Tls("bad certificate".into())),
            Fault::Client(ClientError::Protocol("odd".into())),
            Fault::Statement(Duration::from_secs(600)),
            Fault::Login(Duration::from_secs(30)),
            Fault::Routing,
            Fault::Answer("two rows".into()),
        ];
        for fault in faults {
            for phase in [Phase::Start, Phase::Snapshot, Phase::Stream] {
                assert_eq!(fault.error("db1:1433", phase).policy(), Policy::Retry, "{fault}");
            }
        }
    }

    #[test]
    fn errors_say_what_happened_to_whom_and_what_to_do() {
        let error = io().error("server db1:1433", Phase::Stream);
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.message.starts_with("the connection to server db1:1433 failed: "), "{}", error.message);
        let error = Fault::Client(ClientError::Tls("bad certificate".into())).error("db1", Phase::Start);
        assert!(error.advice().contains("driver.trustStore"));
        let error = Fault::Statement(Duration::from_secs(600)).error("shop", Phase::Snapshot);
        assert_eq!((error.kind, error.message.contains("The query has timed out.")), (ErrorKind::Timeout, true));
    }

    #[test]
    fn only_an_answer_leaves_the_connection_usable() {
        assert!(Fault::Answer("no row".into()).leaves_connection());
        for fault in [io(), Fault::Statement(Duration::ZERO), Fault::Login(Duration::ZERO), Fault::Routing] {
            assert!(!fault.leaves_connection(), "{fault}");
        }
    }
}
