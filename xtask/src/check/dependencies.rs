//! The layers: a crate may be built on crates of lower layers only, as ARCHITECTURE.md orders them, and every
//! outside dependency has a reason that is written down.

use super::metadata::{Package, Workspace};
use crate::shell;

/// Where the layers stand, in the table that begins with this line.
const LAYERS: &str = "ARCHITECTURE.md";
const LAYERS_TABLE: &str = "| layer | crate |";

/// Where the reasons for outside dependencies stand.
const REASONS: &str = "DEPENDENCIES.md";

/// Every dependency that points the wrong way or has no reason.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>, String> {
    let read = |name: &str| {
        std::fs::read_to_string(shell::root().join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let layers = Layers::parse(&read(LAYERS)?)?;
    Ok(judge(&layers, &workspace.packages, &read(REASONS)?))
}

/// The crates of ours, and the layer of each.
struct Layers {
    rows: Vec<(String, u8)>,
}

impl Layers {
    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(LAYERS_TABLE));
        lines.next().ok_or_else(|| format!("{LAYERS}: no table begins with {LAYERS_TABLE:?}"))?;
        let mut rows: Vec<(String, u8)> = Vec::new();
        for line in lines.skip(1).take_while(|line| line.starts_with('|')) {
            let mut cells = line.split('|').skip(1).map(str::trim);
            let (layer, name) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            let layer = layer.parse().map_err(|_| format!("{LAYERS}: {layer:?} is no layer: {line}"))?;
            let name = name.trim_matches('`').to_owned();
            if rows.iter().any(|(known, _)| *known == name) {
                return Err(format!("{LAYERS}: {name} stands in the table of layers twice"));
            }
            rows.push((name, layer));
        }
        Ok(Self { rows })
    }

    fn of(&self, name: &str) -> Option<u8> {
        self.rows.iter().find(|(known, _)| known == name).map(|(_, layer)| *layer)
    }
}

fn judge(layers: &Layers, packages: &[Package], reasons: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        // Chores, tests and the guide stand on whatever they need, and nothing stands on them.
        if !package.is_published {
            continue;
        }
        let Some(layer) = layers.of(name) else {
            findings.push(format!("{name}: not in the table of layers of {LAYERS}"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.for_tests) {
            let wanted = dependency.name.as_str();
            match layers.of(wanted) {
                Some(below) if below < layer => {}
                Some(other) => {
                    findings
                        .push(format!("{name} (layer {layer}) must not depend on {wanted} (layer {other})"));
                }
                None if reasons.contains(&format!("| `{wanted}` |")) => {}
                None => {
                    findings.push(format!("{name} depends on {wanted}, for which {REASONS} gives no reason"));
                }
            }
        }
    }
    let exists = |name: &str| packages.iter().any(|package| package.name == name);
    for (name, _) in layers.rows.iter().filter(|(name, _)| !exists(name)) {
        findings
            .push(format!("{name} stands in the table of layers of {LAYERS}, and no crate has this name"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Dependency;
    use super::*;

    const TABLE: &str = "\
# Words
| layer | crate | what it knows |
|---|---|---|
| 0 | `base` | time |
| 1 | `wire` | frames |
| 1 | `link` | links |

| 3 | `elsewhere` | another table |
";

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|&(name, for_tests)| Dependency { name: name.into(), for_tests, ..Dependency::default() })
            .collect();
        Package { name: name.into(), dependencies, is_published: true, ..Package::default() }
    }

    /// The findings of these and of what else the table names.
    fn findings(packages: &[Package]) -> Vec<String> {
        let others =
            ["base", "wire", "link"].into_iter().filter(|name| packages.iter().all(|one| one.name != *name));
        let given = packages.iter().map(|one| Package {
            name: one.name.clone(),
            dependencies: one.dependencies.clone(),
            is_published: one.is_published,
            ..Package::default()
        });
        let all: Vec<Package> = given.chain(others.map(|name| package(name, &[]))).collect();
        judge(&Layers::parse(TABLE).unwrap(), &all, "| `bytes` | slices |")
    }

    #[test]
    fn a_row_without_a_crate_is_found() {
        let found = judge(&Layers::parse(TABLE).unwrap(), &[package("base", &[]), package("wire", &[])], "");
        assert_eq!(
            found,
            ["link stands in the table of layers of ARCHITECTURE.md, and no crate has this name"]
        );
    }

    #[test]
    fn what_points_down_passes() {
        let wire = package("wire", &[("base", false), ("link", true), ("bytes", false), ("proptest", true)]);
        assert_eq!(findings(&[wire]), [""; 0]);
    }

    #[test]
    fn what_points_up_or_aside_is_found() {
        let found = findings(&[package("wire", &[("link", false)]), package("base", &[("wire", false)])]);
        assert_eq!(
            found,
            [
                "wire (layer 1) must not depend on link (layer 1)",
                "base (layer 0) must not depend on wire (layer 1)",
            ]
        );
    }

    #[test]
    fn strangers_are_found() {
        let found = findings(&[package("elsewhere", &[]), package("wire", &[("libc", false)])]);
        assert_eq!(
            found,
            [
                "elsewhere: not in the table of layers of ARCHITECTURE.md",
                "wire depends on libc, for which DEPENDENCIES.md gives no reason",
            ]
        );
    }

    #[test]
    fn what_is_not_published_may_stand_on_anything_and_carries_nothing() {
        let guide = Package { is_published: false, ..package("guide", &[("wire", false), ("libc", false)]) };
        let found = findings(&[guide, package("wire", &[("guide", false)])]);
        assert_eq!(found, ["wire depends on guide, for which DEPENDENCIES.md gives no reason"]);
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        assert!(Layers::parse("no table").is_err());
        assert!(Layers::parse(&TABLE.replace("| 1 | `link`", "| one | `link`")).is_err());
        assert!(Layers::parse(&TABLE.replace("`link`", "`wire`")).is_err());
    }
}
