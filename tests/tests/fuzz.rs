//! The fuzz targets of `tests/fuzz` as tests: they compile, and every seed passes.

use std::path::Path;

use anyhow::{Context, Result, ensure};

#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#[path = "../fuzz/src/lib.rs"]
mod targets;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 7] = [
    ("bson_to_json", targets::bson_to_json::run),
    ("column_default", targets::column_default::run),
    ("log_position", targets::log_position::run),
    ("pipeline", targets::pipeline::run),
    ("properties", targets::properties::run),
    ("resume_token", targets::resume_token::run),
    ("signals", targets::signals::run),
];

/// Names in a folder, without endings.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        Ok(entry?.path().file_stem().unwrap_or_default().to_string_lossy().into_owned())
    };
    let mut names = entries.map(name).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[test]
fn every_seed_passes_its_target() -> Result<()> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let known: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&package.join("targets"))?, known, "a target that no test runs");
    assert_eq!(names(&package.join("seeds"))?, known);
    for (name, run) in TARGETS {
        let mut seeds = 0;
        for entry in std::fs::read_dir(package.join("seeds").join(name))? {
            let path = entry?.path();
            let seed = std::fs::read(&path)?;
            if std::panic::catch_unwind(|| run(&seed)).is_err() {
                anyhow::bail!("{} is refuted by {}", name, path.display());
            }
            seeds += 1;
        }
        ensure!(seeds > 0, "{name} has no seeds");
    }
    Ok(())
}
