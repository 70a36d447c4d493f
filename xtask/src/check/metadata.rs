//! What `cargo metadata` says of the workspace, as far as the checks ask.

use crate::shell::{self, cargo};
use serde_json::Value;
use std::path::PathBuf;

/// The packages of the workspace.
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
}

/// A package of ours.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether it is there for tests, examples and benches alone.
    pub(crate) for_tests: bool,
}

impl Package {
    /// Whether it holds the project's chores, which nobody outside builds.
    pub(crate) fn is_chores(&self) -> bool {
        self.name == "xtask"
    }
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Self, String> {
        let text = shell::output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
        Ok(Self { packages: array(&metadata, "packages").map(package).collect() })
    }
}

fn package(value: &Value) -> Package {
    let manifest = PathBuf::from(string(value, "manifest_path"));
    Package {
        folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        name: string(value, "name").to_owned(),
        dependencies: array(value, "dependencies").map(dependency).collect(),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency { name: string(value, "name").to_owned(), for_tests: string(value, "kind") == "dev" }
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
