//! The option reference in `docs/options` is what the tables say.
//!
//! After a change of a table run the test once with `THALWEG_WRITE_REFERENCE=1`.

use std::path::Path;

use anyhow::{Result, ensure};
use thalweg_config::reference::markdown;
use thalweg_config::{OptionTable, connector, node};
use thalweg_core::convert::Role;

#[test]
fn the_option_reference_is_current() -> Result<()> {
    let avro = Role::Value.class("AvroConverter").map_err(anyhow::Error::msg)?;
    let tables: &[(&str, &OptionTable)] = &[
        ("node.md", &node::WORKER),
        ("connector.md", &connector::FRAMEWORK),
        ("connector-kafka.md", &thalweg_kafka::CONNECTOR_OPTIONS),
        ("converter-avro.md", avro.options),
        ("mongodb.md", &thalweg_mongodb::options::TABLE),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/options");
    let write = std::env::var_os("THALWEG_WRITE_REFERENCE").is_some();
    for (file, table) in tables {
        let path = folder.join(file);
        let wanted = markdown(table);
        if write {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(&path, &wanted)?;
        }
        let held = std::fs::read_to_string(&path).unwrap_or_default();
        ensure!(held == wanted, "docs/options/{file} is not what its table says; see this test's header");
    }
    Ok(())
}
