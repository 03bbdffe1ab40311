//! What the driver's errors and the server's codes mean for a partition.
//!
//! One place sorts them: [`class`] for the code that decides what to do next, [`error`] for the
//! words that an operator reads. Codes that mean "the position is gone" are few and exact: an error
//! of the network or of rights must never look like a lost position.

use mongodb::error::{Error as DriverError, ErrorKind as DriverKind, WriteFailure};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::keystore::Unusable;
use crate::reply::BadReply;

/// `Unrecognized pipeline stage name`.
pub(crate) const UNKNOWN_STAGE: i32 = 40324;

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The server cannot be reached.
    Connect,
    /// Opening again at the last token is expected to work (election, cursor lost).
    Resume,
    /// The server no longer holds the position, or it is damaged.
    Lost,
    /// The token is of an invalidating event: to be used with `startAfter`.
    FromInvalidate,
    /// A right is missing (code 13).
    Permission,
    /// The credentials are wrong.
    Auth,
    /// The server refuses what the configuration asks for.
    Config,
    /// An event exceeds the server's limit of 16 MB.
    Oversize,
    /// Anything else the server says: worth another start of the task.
    Retry,
}

/// Sorts an error.
pub(crate) fn class(error: &DriverError) -> Class {
    match &*error.kind {
        DriverKind::Io(_)
        | DriverKind::DnsResolve { .. }
        | DriverKind::ConnectionPoolCleared { .. }
        | DriverKind::ServerSelection { .. } => Class::Connect,
        DriverKind::Authentication { .. } => Class::Auth,
        DriverKind::Custom(_) if error.get_custom::<Unusable>().is_some() => Class::Config,
        DriverKind::InvalidTlsConfig { .. }
        | DriverKind::InvalidArgument { .. }
        | DriverKind::IncompatibleServer { .. }
        | DriverKind::SessionsNotSupported => Class::Config,
        _ => match code(error) {
            Some(code) => class_of(code, &text(error), error.contains_label("ResumableChangeStreamError")),
            None => Class::Retry,
        },
    }
}

/// Sorts what the server says. `resumable`: it says so itself.
fn class_of(code: i32, message: &str, resumable: bool) -> Class {
    match code {
        280 if message.contains("modified by the pipeline") => Class::Config,
        260 if message.contains("invalidate") => Class::FromInvalidate,
        260 | 280 | 286 | 40647 | 40649 | 15 => Class::Lost,
        9 if message.contains("hex string") => Class::Lost,
        _ if message.contains("KeyString format error") => Class::Lost,
        10334 => Class::Oversize,
        13 => Class::Permission,
        18 | 8000 => Class::Auth,
        9 | 20 | 47 | 51091 | 40573 | 40674 | UNKNOWN_STAGE => Class::Config,
        // A cursor that is gone, an election, a server that starts or stops. A live cursor overtaken by
        // the oplog (136) is opened again once; if the position is gone too, the server then says so.
        6 | 7 | 43 | 63 | 89 | 91 | 133 | 134 | 136 | 150 | 189 | 234 | 262 | 9001 | 10058 | 10107 | 11600 | 11602
        | 13388 | 13435 | 13436 => Class::Resume,
        _ if resumable => Class::Resume,
        _ => Class::Retry,
    }
}

/// The server's code, if it is an answer of the server.
pub(crate) fn code(error: &DriverError) -> Option<i32> {
    match &*error.kind {
        DriverKind::Command(e) => Some(e.code),
        DriverKind::Write(WriteFailure::WriteConcernError(e)) => Some(e.code),
        DriverKind::Write(WriteFailure::WriteError(e)) => Some(e.code),
        _ => None,
    }
}

/// The message alone, as the server or the driver words it.
pub(crate) fn text(error: &DriverError) -> String {
    match &*error.kind {
        DriverKind::Command(e) => e.message.clone(),
        DriverKind::Custom(_) => {
            let reply = error.get_custom::<BadReply>().map(ToString::to_string);
            reply
                .or_else(|| error.get_custom::<Unusable>().map(ToString::to_string))
                .unwrap_or_else(|| error.to_string())
        }
        kind => kind.to_string(),
    }
}

/// The error as the task reports it.
pub(crate) fn error(error: &DriverError, phase: Phase) -> Error {
    let class = class(error);
    let code = code(error);
    let said = match &*error.kind {
        DriverKind::Command(e) if !e.code_name.is_empty() => {
            format!("error {} ({}): {}", e.code, e.code_name, e.message)
        }
        DriverKind::Command(e) => format!("error {}: {}", e.code, e.message),
        _ => text(error),
    };
    let (kind, message) = match class {
        Class::Connect if timed_out(error) => (ErrorKind::Timeout, format!("MongoDB did not answer in time: {said}")),
        Class::Connect => (ErrorKind::Connect, format!("Unable to connect to MongoDB: {said}")),
        Class::Resume => (ErrorKind::SourceBusy, format!("MongoDB interrupted the operation: {said}")),
        Class::Lost | Class::FromInvalidate => {
            (ErrorKind::PositionLost, format!("MongoDB no longer holds the position of the change stream: {said}"))
        }
        Class::Permission => {
            (ErrorKind::Permission, format!("the MongoDB user doesn't have sufficient privileges: {said}"))
        }
        Class::Auth => (ErrorKind::Auth, format!("MongoDB does not accept the credentials: {said}")),
        Class::Config if matches!(&*error.kind, DriverKind::Custom(_)) => (ErrorKind::Config, said.clone()),
        Class::Config => (ErrorKind::Config, format!("MongoDB refuses the configured operation: {said}")),
        Class::Oversize => {
            (ErrorKind::SourceRefused, format!("a change event is larger than MongoDB can deliver: {said}"))
        }
        Class::Retry => (ErrorKind::SourceBusy, format!("MongoDB answered with an error: {said}")),
    };
    let made = Error::new(kind, phase, message);
    match advice(class, code, &said) {
        Some(advice) => made.advise(advice),
        None => made,
    }
}

fn timed_out(error: &DriverError) -> bool {
    matches!(&*error.kind, DriverKind::Io(e) if e.kind() == std::io::ErrorKind::TimedOut)
}

/// The next step, where it can be said better than by the kind alone.
fn advice(class: Class, code: Option<i32>, said: &str) -> Option<&'static str> {
    Some(match (class, code) {
        (Class::Connect, _) if said.contains("certificate") || said.contains("TLS") => {
            "check the certificates: mongodb.ssl.truststore must hold the authority of the server's certificate, and \
             the certificate must name the host"
        }
        (Class::Auth, _) => {
            "check mongodb.user, mongodb.password and mongodb.authsource, or the credentials and authSource in \
             mongodb.connection.string, then restart the task"
        }
        (Class::Permission, _) => {
            "grant the connector's user what the message names: read on all databases for capture.scope=deployment, \
             read on one database for capture.scope=database, find and changeStream on the collection for \
             capture.scope=collection; then restart the task"
        }
        (Class::Oversize, _) => {
            "set cursor.oversize.handling.mode=split (MongoDB 6.0.9 or later), or skip with \
             cursor.oversize.skip.threshold, or capture without pre-images or post-images; then restart the task. The \
             server does not say which collection it is; in mongosh the changes that follow the position named below \
             show it: db.getSiblingDB('admin').watch([{$project: {ns: 1, documentKey: 1}}], {allChangesForCluster: \
             true, resumeAfter: <position>})"
        }
        (Class::Config, Some(280)) => "keep the field _id in the stages of cursor.pipeline, then restart the task",
        (Class::Config, Some(20)) => {
            "use only $addFields, $match, $project, $replaceRoot, $replaceWith, $redact, $set and $unset in \
             cursor.pipeline, then restart the task"
        }
        (Class::Config, Some(UNKNOWN_STAGE)) => {
            "cursor.oversize.handling.mode=split needs MongoDB 6.0.9 or later; otherwise correct the name of the stage \
             in cursor.pipeline, then restart the task"
        }
        (Class::Config, Some(51091)) => {
            "correct the regular expression in the include or exclude lists: the server reads it as PCRE; then restart \
             the task"
        }
        (Class::Config, Some(40573)) => {
            "change streams need a replica set: start mongod with --replSet, run rs.initiate(), and add replicaSet= to \
             mongodb.connection.string"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::doc;
    use mongodb::error::CommandError;
    use thalweg_core::Policy;

    use super::*;

    fn command(code: i32, name: &str, message: &str) -> DriverError {
        let reply = doc! {"code": code, "codeName": name, "errmsg": message};
        let error: CommandError = bson::deserialize_from_document(reply).unwrap();
        DriverError::from(DriverKind::Command(error))
    }

    #[test]
    fn codes_of_the_server() {
        for code in
            [6, 7, 43, 63, 89, 91, 133, 134, 136, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436]
        {
            assert_eq!(class_of(code, "", false), Class::Resume, "{code}");
        }
        for (code, message, expected) in [
            (
                286,
                "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
                Class::Lost,
            ),
            (280, "cannot resume stream; the resume token was not found.", Class::Lost),
            (
                280,
                "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline.",
                Class::Config,
            ),
            (
                260,
                "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.",
                Class::FromInvalidate,
            ),
            (260, "Invalid resume token", Class::Lost),
            (9, "resume token string was not a valid hex string", Class::Lost),
            (9, "Failed to parse: unknown operator", Class::Config),
            (15, "Overflow", Class::Lost),
            (40647, "Bad resume token: _data of missing or of wrong type", Class::Lost),
            (40649, "invalid empty resume token", Class::Lost),
            (50811, "KeyString format error: Unknown type", Class::Lost),
            (10334, "BSONObj size is invalid", Class::Oversize),
            (13, "not authorized", Class::Permission),
            (18, "Authentication failed.", Class::Auth),
            (8000, "bad auth", Class::Auth),
            (20, "$group is not permitted in a $changeStream pipeline", Class::Config),
            (40324, "Unrecognized pipeline stage name: '$changeStreamSplitLargeEvent'", Class::Config),
            (51091, "Regular expression is invalid", Class::Config),
            (40573, "The $changeStream stage is only supported on replica sets", Class::Config),
            (47, "no matching document", Class::Config),
            (8, "unknown error", Class::Retry),
        ] {
            assert_eq!(class_of(code, message, false), expected, "{code} {message}");
        }
        assert_eq!(class_of(8, "unknown error", true), Class::Resume);
    }

    #[test]
    fn mgo_08_unreachable_is_retried_wrong_credentials_are_not() {
        let broken = DriverError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!((class(&broken), error(&broken, Phase::Start).policy()), (Class::Connect, Policy::Retry));
        let slow = DriverError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        assert_eq!((class(&slow), error(&slow, Phase::Stream).kind), (Class::Connect, ErrorKind::Timeout));
        for (code, kind) in [(18, ErrorKind::Auth), (13, ErrorKind::Permission)] {
            let refused = error(&command(code, "", "no"), Phase::Start);
            assert_eq!((refused.kind, refused.policy()), (kind, Policy::NeedsUser));
        }
    }

    #[test]
    fn mgo_05_a_lost_position_names_the_error() {
        let lost = error(&command(286, "ChangeStreamHistoryLost", "gone"), Phase::Start);
        assert_eq!((lost.kind, lost.policy()), (ErrorKind::PositionLost, Policy::NeedsUser));
        assert!(lost.message.contains("error 286 (ChangeStreamHistoryLost): gone"), "{}", lost.message);
        assert!(lost.advice().contains("when_needed"));
    }

    #[test]
    fn mgo_20_an_oversized_event_fails_once_with_advice() {
        let large = error(&command(10334, "BSONObjectTooLarge", "size"), Phase::Stream);
        assert_eq!(large.policy(), Policy::NeedsUser);
        assert!(large.message.contains("10334") && large.advice().contains("cursor.oversize.handling.mode"));
        assert!(large.advice().contains("db.getSiblingDB('admin').watch("), "{}", large.advice());
    }

    #[test]
    fn every_class_but_passing_ones_needs_the_user() {
        for (code, policy) in [
            (91, Policy::Retry),
            (8, Policy::Retry),
            (286, Policy::NeedsUser),
            (20, Policy::NeedsUser),
            (40324, Policy::NeedsUser),
            (51091, Policy::NeedsUser),
        ] {
            assert_eq!(error(&command(code, "", ""), Phase::Stream).policy(), policy, "{code}");
        }
    }
}
