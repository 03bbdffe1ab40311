//! The dependency direction between crates, and which crate may name which library.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Internal crates that each crate may use outside its tests.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let table: &[(&str, &[&str])] = &[
        ("thalweg-config", &[]),
        ("thalweg-core", &["thalweg-config"]),
        ("thalweg-kafka", &["thalweg-config", "thalweg-core"]),
        ("thalweg-mongodb", &["thalweg-config", "thalweg-core"]),
        ("thalweg-sqlserver", &["thalweg-config", "thalweg-core"]),
        ("thalweg-actors", &["thalweg-config", "thalweg-core"]),
        // The binary names the concrete connectors, and its demo starts a real mongod.
        (
            "thalweg-cluster",
            &[
                "thalweg-config",
                "thalweg-core",
                "thalweg-actors",
                "thalweg-kafka",
                "thalweg-mongodb",
                "thalweg-sqlserver",
                "thalweg-services",
            ],
        ),
        // In the place of a crate that openraft uses.
        ("base2histogram", &[]),
        // Reads a connector's partitions as the runtime would, for its tests.
        ("thalweg-reading", &["thalweg-config", "thalweg-core"]),
        // Starts databases and brokers; knows nothing of the product.
        ("thalweg-services", &[]),
        // A server of its own.
        ("thalweg-sqlserver-emulator", &[]),
        ("thalweg-tests", &["thalweg-services"]),
        ("thalweg-jepsen", &["thalweg-services"]),
    ];
    table.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect()
}

/// Libraries that only some crates may name.
const CONFINED: &[(&str, &[&str])] = &[
    ("openraft", &["thalweg-cluster"]),
    ("redb", &["thalweg-cluster"]),
    ("actix", &["thalweg-actors", "thalweg-cluster"]),
    // The fault harness reads topics like any consumer; it uses no internal crate.
    ("rdkafka", &["thalweg-kafka", "thalweg-services", "thalweg-tests", "thalweg-jepsen"]),
    ("rdkafka-sys", &["thalweg-kafka"]),
];

#[test]
fn crates_depend_in_one_direction_only() -> Result<()> {
    let metadata =
        MetadataCommand::new().manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).no_deps().exec()?;
    let allowed = allowed();
    let mut faults = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(may_use) = allowed.get(name) else {
            faults.push(format!("{name} is not in the table of this test"));
            continue;
        };
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            let in_tests_only = dependency.kind == DependencyKind::Development;
            if allowed.contains_key(used) && !may_use.contains(used) && !in_tests_only {
                faults.push(format!("{name} must not depend on {used}"));
            }
            if matches!(used, "thalweg-tests" | "thalweg-jepsen") {
                faults.push(format!("{name} must not depend on {used}"));
            }
            for (library, crates) in CONFINED {
                if used == *library && !crates.contains(&name) && !in_tests_only {
                    faults.push(format!("{name} must not name {library}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The cluster library knows connectors and Kafka through traits; only the binary names them.
#[test]
fn the_cluster_library_names_no_connector() -> Result<()> {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster/src");
    let binary_only = ["program"];
    let mut open = vec![sources];
    let mut faults = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
            if binary_only.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            for concrete in ["thalweg_mongodb::", "thalweg_sqlserver::", "thalweg_kafka::", "mongodb::"] {
                if text.lines().any(|l| l.contains(concrete) && !l.trim_start().starts_with("//")) {
                    faults.push(format!("{} names {concrete}", path.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
