//! The layers: a crate may depend on crates of lower layers only, and every outside dependency of the
//! library has a reason that is written down.

use crate::shell::{self, cargo};
use serde_json::Value;

/// Layer of each crate, and the crates of ours that it may use (for building, not for tests).
const LAYERS: &[(&str, u8, &[&str])] = &[
    ("godwit-base", 0, &[]),
    ("godwit-text", 0, &[]),
    ("godwit-wire", 1, &["godwit-base"]),
    ("godwit-link", 1, &["godwit-base"]),
    ("godwit-recovery", 2, &["godwit-base"]),
    ("godwit-transport", 3, &["godwit-base", "godwit-text", "godwit-wire", "godwit-recovery"]),
    ("godwit-http3", 4, &["godwit-base", "godwit-wire"]),
    ("godwit-datapath", 4, &["godwit-base"]),
    ("godwit-body", 4, &[]),
    ("godwit-engine", 5, &["godwit-base", "godwit-datapath", "godwit-transport"]),
    ("godwit-proxy", 5, &["godwit-body"]),
    ("godwit-report", 5, &["godwit-base", "godwit-text"]),
    (
        "godwit",
        6,
        &[
            "godwit-base",
            "godwit-body",
            "godwit-datapath",
            "godwit-engine",
            "godwit-http3",
            "godwit-proxy",
            "godwit-recovery",
            "godwit-transport",
            "godwit-wire",
        ],
    ),
    ("godwit-sim", 6, &["godwit-base", "godwit-link", "godwit-transport", "godwit-wire"]),
    (
        "godwit-cli",
        7,
        &[
            "godwit",
            "godwit-base",
            "godwit-datapath",
            "godwit-link",
            "godwit-proxy",
            "godwit-recovery",
            "godwit-report",
            "godwit-sim",
            "godwit-text",
        ],
    ),
    ("xtask", 8, &["godwit-base", "godwit-datapath", "godwit-link"]),
];

/// Where the reasons for outside dependencies stand.
const REASONS: &str = "DEPENDENCIES.md";

/// Every dependency that points the wrong way or has no reason.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let text = shell::output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let reasons = std::fs::read_to_string(shell::root().join(REASONS)).unwrap_or_default();
    let mut findings = Vec::new();
    for package in array(&metadata, "packages") {
        let name = string(package, "name");
        let Some((_, layer, allowed)) = LAYERS.iter().find(|(known, ..)| *known == name) else {
            findings.push(format!("{name}: not in the table of layers (xtask/src/check/dependencies.rs)"));
            continue;
        };
        for dependency in array(package, "dependencies") {
            let wanted = string(dependency, "name");
            let for_tests = string(dependency, "kind") == "dev";
            match LAYERS.iter().find(|(known, ..)| *known == wanted) {
                Some(_) if for_tests => {}
                Some((_, below, _)) if below < layer && allowed.contains(&wanted) => {}
                Some((_, other, _)) => {
                    findings
                        .push(format!("{name} (layer {layer}) must not depend on {wanted} (layer {other})"));
                }
                None if for_tests || name == "xtask" || reasons.contains(&format!("| `{wanted}` |")) => {}
                None => {
                    findings.push(format!("{name} depends on {wanted}, for which {REASONS} gives no reason"))
                }
            }
        }
    }
    Ok(findings)
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_itself_points_down() {
        for (name, layer, allowed) in LAYERS {
            for below in *allowed {
                let (_, other, _) = LAYERS.iter().find(|(known, ..)| known == below).unwrap();
                assert!(other < layer, "{name} may use {below}");
            }
        }
    }
}
