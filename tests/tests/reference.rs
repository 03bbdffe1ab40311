//! The option reference in `docs/options` is what the tables say.
//!
//! After a change of a table run the test once with `THALWEG_WRITE_REFERENCE=1`.

use std::path::Path;

use anyhow::{Result, ensure};
use thalweg_config::reference::{Class, classes, markdown};
use thalweg_config::{OptionTable, connector, node};
use thalweg_core::convert::Role;
use thalweg_core::source::Connector;
use thalweg_core::transform::{PREDICATES, TransformClasses};

#[test]
fn the_option_reference_is_current() -> Result<()> {
    let avro = Role::Value.class("AvroConverter").map_err(anyhow::Error::msg)?;
    let tables: &[(&str, &OptionTable)] = &[
        ("node.md", &node::WORKER),
        ("connector.md", &connector::FRAMEWORK),
        ("connector-kafka.md", &thalweg_kafka::CONNECTOR_OPTIONS),
        ("converter-avro.md", avro.options),
        ("mongodb.md", &thalweg_mongodb::options::TABLE),
        ("sqlserver.md", &thalweg_sqlserver::options::TABLE),
    ];
    let mut pages: Vec<(&str, String)> = tables.iter().map(|(file, table)| (*file, markdown(table))).collect();
    pages.push(("transforms.md", transforms()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/options");
    let write = std::env::var_os("THALWEG_WRITE_REFERENCE").is_some();
    for (file, wanted) in pages {
        let path = folder.join(file);
        if write {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(&path, &wanted)?;
        }
        let held = std::fs::read_to_string(&path).unwrap_or_default();
        ensure!(held == wanted, "docs/options/{file} is not what its table says; see this test's header");
    }
    Ok(())
}

/// Every transform and predicate that a node knows; those of one table together.
fn transforms() -> String {
    let known = TransformClasses::default().with(thalweg_mongodb::MongoDbConnector::new().transforms());
    let transforms = known.iter().map(|class| (class.class, class.options));
    let predicates = PREDICATES.iter().map(|class| (class.class, class.options));
    let mut list: Vec<Class<'_>> = Vec::new();
    for (name, table) in transforms.chain(predicates) {
        match list.iter_mut().find(|class| std::ptr::eq(class.table, table)) {
            Some(class) => class.names.push(name),
            None => list.push(Class { names: vec![name], table }),
        }
    }
    classes("Transforms and predicates", ABOUT, &list)
}

const ABOUT: &str = "\
`transforms=a,b` names transforms in the order in which a message passes them. Each has its class in \
`transforms.a.type` and its options below `transforms.a.`; with `transforms.a.predicate=p` it is for the \
messages for which the predicate `p` is true, with `transforms.a.negate=true` for the others. \
`predicates=p` names predicates, with their classes and options below `predicates.p.`. Behind the last dot \
a class name is enough.

Conditions of `io.debezium.transforms.Filter` and `ContentBasedRouter` are written in a part of the Common \
Expression Language (`language=cel`): literals and lists, fields (`value.after.id`, `headers['name']`), \
`== != < <= > >= in`, `&& || !`, `+`, `a ? b : c`, and the functions `size`, `has`, `startsWith`, \
`endsWith`, `contains` and `matches`. There are `key`, `value`, `topic`, `header` and `headers`, and \
`keySchema` and `valueSchema` with `name` and `version`. A field of what is null is null; a field that is \
not there refuses the message, except inside of `has`.";
