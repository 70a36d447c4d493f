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
    /// Whether it may go to a registry at all.
    pub(crate) is_published: bool,
    pub(crate) description: String,
    pub(crate) license: String,
    pub(crate) keywords: usize,
    pub(crate) categories: usize,
    /// The oldest compiler that will do, if one is promised.
    pub(crate) rust_version: Option<String>,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether it is there for tests, examples and benches alone.
    pub(crate) for_tests: bool,
    /// The name that the code has for it, if that is another one.
    pub(crate) rename: Option<String>,
    /// The versions that will do.
    pub(crate) version: String,
    /// Whether it lies in this workspace.
    pub(crate) is_ours: bool,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Self, String> {
        let text = shell::output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
        Ok(Self { packages: array(&metadata, "packages").map(package).collect() })
    }

    /// The oldest compiler that will do for all of it.
    pub(crate) fn rust_version(&self) -> Option<&str> {
        self.packages.iter().find_map(|package| package.rust_version.as_deref())
    }
}

fn package(value: &Value) -> Package {
    let manifest = PathBuf::from(string(value, "manifest_path"));
    Package {
        folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        name: string(value, "name").to_owned(),
        dependencies: array(value, "dependencies").map(dependency).collect(),
        is_published: value.get("publish").is_none_or(Value::is_null),
        description: string(value, "description").to_owned(),
        license: string(value, "license").to_owned(),
        keywords: array(value, "keywords").count(),
        categories: array(value, "categories").count(),
        rust_version: value.get("rust_version").and_then(Value::as_str).map(str::to_owned),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: string(value, "name").to_owned(),
        for_tests: string(value, "kind") == "dev",
        rename: value.get("rename").and_then(Value::as_str).map(str::to_owned),
        version: string(value, "req").to_owned(),
        is_ours: value.get("path").is_some_and(Value::is_string),
    }
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
