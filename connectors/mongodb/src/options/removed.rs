//! Names of earlier releases that have no equivalent under which they could be read: refused with
//! the name to use instead.

use thalweg_config::{OptionDef, OptionKind};

const fn removed(name: &'static str, advice: &'static str) -> OptionDef {
    OptionDef::new(name, OptionKind::String, "Removed.").refused(advice).unpublished()
}

pub(super) const OPTIONS: &[OptionDef] = &[
    removed("mongodb.hosts", "was removed; use mongodb.connection.string, e.g. mongodb://host:27017/?replicaSet=rs0"),
    removed(
        "mongodb.members.auto.discover",
        "was removed; members are always discovered from mongodb.connection.string",
    ),
    removed("mongodb.poll.interval.sec", "was removed; use mongodb.poll.interval.ms"),
];
