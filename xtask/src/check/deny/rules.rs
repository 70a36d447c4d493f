//! The part of `deny.toml` that is understood here.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// What packages may be.
pub(super) struct Rules {
    pub(super) licences: Vec<String>,
    /// Further licences of single packages.
    pub(super) exceptions: BTreeMap<String, Vec<String>>,
    /// Names of packages that must not be there.
    pub(super) banned: Vec<String>,
    /// `name@version` that may be there beside another version.
    pub(super) skipped: Vec<String>,
    pub(super) registries: Vec<String>,
}

impl Rules {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let empty = Table::new();
        let section = |name: &str| table.get(name).and_then(Value::as_table).unwrap_or(&empty);
        let licences = section("licenses");
        let exceptions = entries(licences, "exceptions").map(|entry| {
            let table = entry.as_table().unwrap_or(&empty);
            (name(entry), entries(table, "allow").map(name).collect())
        });
        let bans = section("bans");
        let rules = Self {
            licences: entries(licences, "allow").map(name).collect(),
            exceptions: exceptions.collect(),
            banned: entries(bans, "deny").map(name).collect(),
            skipped: entries(bans, "skip").map(name).collect(),
            registries: entries(section("sources"), "allow-registry").map(name).collect(),
        };
        if rules.licences.is_empty() || rules.registries.is_empty() {
            return Err("deny.toml: licenses.allow and sources.allow-registry are needed".into());
        }
        Ok(rules)
    }
}

fn entries<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Value> {
    table.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// An entry is a name or a table with the name of a crate.
fn name(entry: &Value) -> String {
    let name = entry.as_str().or_else(|| entry.get("crate").and_then(Value::as_str));
    name.unwrap_or_default().to_owned()
}
