//! Licences, banned and repeated packages, and sources of the dependencies, as `deny.toml` has it.
//!
//! `cargo deny check` reads the same file and does the same and more (advisories, licence texts). This is the part
//! that can be had from `cargo metadata` within a second, so that no build of that program is needed for it.

mod licence;
mod rules;

use crate::shell::{self, cargo};
use rules::Rules;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The platform whose dependencies are looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A package of the dependency tree.
#[derive(Debug, Clone, Default)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// None is a package of ours.
    source: Option<String>,
}

/// Everything that `deny.toml` does not permit.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let file = shell::root().join("deny.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let rules = Rules::parse(&text)?;
    let arguments = ["metadata", "--format-version=1", "--all-features", "--filter-platform", PLATFORM];
    let text = shell::output(cargo().args(arguments))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages: Vec<Package> = packages.into_iter().flatten().map(package).collect();
    Ok(judge(&rules, &packages))
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    Package {
        name: text("name").unwrap_or_default().to_owned(),
        version: text("version").unwrap_or_default().to_owned(),
        licence: text("license").unwrap_or_default().to_owned(),
        source: text("source").map(str::to_owned),
    }
}

fn judge(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut findings = licences(rules, packages);
    findings.extend(repeated(rules, packages));
    for package in packages {
        let Package { name, version, source, .. } = package;
        if rules.banned.contains(name) {
            findings.push(format!("deny.toml: {name} {version} is banned"));
        }
        let Some(source) = source else { continue };
        let known =
            source.strip_prefix("registry+").is_some_and(|url| rules.registries.iter().any(|one| one == url));
        if !known {
            findings.push(format!("deny.toml: {name} {version} comes from {source}"));
        }
    }
    findings
}

fn licences(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for Package { name, version, licence, .. } in packages {
        let exceptions = rules.exceptions.get(name).cloned().unwrap_or_default();
        let mut permitted = |one: &str| {
            let found = rules.licences.iter().chain(&exceptions).find(|permitted| *permitted == one);
            used.extend(found.cloned());
            found.is_some()
        };
        match licence::satisfied(licence, &mut permitted) {
            Ok(true) => {}
            Ok(false) => {
                findings.push(format!("deny.toml: {name} {version}: licence {licence:?} is not allowed"))
            }
            Err(why) => findings.push(format!("deny.toml: {name} {version}: licence {licence:?}: {why}")),
        }
    }
    for licence in rules.licences.iter().filter(|licence| !used.contains(*licence)) {
        findings.push(format!("deny.toml: no package needs the licence {licence}"));
    }
    for name in rules.exceptions.keys().filter(|name| packages.iter().all(|package| package.name != **name)) {
        findings.push(format!("deny.toml: there is an exception for {name}, and no such package"));
    }
    findings
}

/// Packages that are there in several versions, and excuses that excuse nothing.
fn repeated(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let mut findings = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let counted = versions.iter().filter(|version| !rules.skipped.contains(&format!("{name}@{version}")));
        if counted.count() > 1 {
            findings.push(format!("deny.toml: {name} is there in versions {}", versions.join(", ")));
        }
    }
    for skipped in &rules.skipped {
        let (name, version) = skipped.split_once('@').unwrap_or((skipped, ""));
        if !versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(&version)) {
            findings.push(format!("deny.toml: {skipped} is skipped, and not there beside another version"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
[licenses]
allow = ["MIT"]
exceptions = [{ crate = "roots", allow = ["CDLA"] }]
[bans]
deny = [{ crate = "openssl" }]
skip = [{ crate = "syn@2.0.0" }]
[sources]
allow-registry = ["https://index"]
"#;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        let source = Some("registry+https://index".into());
        Package { name: name.into(), version: version.into(), licence: licence.into(), source }
    }

    fn good() -> Vec<Package> {
        vec![
            package("roots", "1.0.0", "CDLA"),
            package("syn", "2.0.0", "MIT/Apache-2.0"),
            package("syn", "3.0.0", "MIT"),
        ]
    }

    fn findings(packages: &[Package]) -> Vec<String> {
        judge(&Rules::parse(RULES).unwrap(), packages)
    }

    #[test]
    fn what_the_rules_permit_passes() {
        assert_eq!(findings(&good()), [""; 0]);
    }

    #[test]
    fn each_rule_is_held() {
        let broken = |change: &dyn Fn(&mut Vec<Package>)| {
            let mut packages = good();
            change(&mut packages);
            findings(&packages)
        };
        assert_eq!(
            broken(&|all| all.push(package("new", "1.0.0", "GPL-3.0"))),
            ["deny.toml: new 1.0.0: licence \"GPL-3.0\" is not allowed"]
        );
        assert_eq!(
            broken(&|all| all.push(package("other", "1.0.0", "CDLA"))),
            ["deny.toml: other 1.0.0: licence \"CDLA\" is not allowed"]
        );
        assert_eq!(
            broken(&|all| all.push(package("syn", "4.0.0", "MIT"))),
            ["deny.toml: syn is there in versions 2.0.0, 3.0.0, 4.0.0"]
        );
        assert_eq!(
            broken(&|all| drop(all.pop())),
            ["deny.toml: syn@2.0.0 is skipped, and not there beside another version"]
        );
        assert_eq!(
            broken(&|all| all.push(package("openssl", "1.0.0", "MIT"))),
            ["deny.toml: openssl 1.0.0 is banned"]
        );
        assert_eq!(
            broken(&|all| all[1].source = Some("git+https://elsewhere".into())),
            ["deny.toml: syn 2.0.0 comes from git+https://elsewhere"]
        );
        assert_eq!(
            broken(&|all| drop(all.remove(0))),
            ["deny.toml: there is an exception for roots, and no such package"]
        );
    }
}
