//! The order of a crate's modules: where the head of its root has a section "Order of the modules", which names them
//! from the bottom, no module may use one that is named after it.

use super::modules::{Arrow, Crate, Sources};
use std::collections::BTreeSet;
use std::path::Path;

const SECTION: &str = "# Order of the modules";

/// Crates that have to have such a section: in them it is not plain from the names.
const ORDERED: [&str; 3] = ["godwit", "godwit-front", "godwit-transport"];

/// Every arrow that points up, and every module that has no place.
pub(crate) fn findings(name: &str, root: &str, sources: &Sources, modules: &Crate) -> Vec<String> {
    let head = sources.get(Path::new(root)).map(String::as_str).unwrap_or_default();
    let places = modules.paths();
    let order: Vec<&str> = section(head).into_iter().filter(|word| places.contains(*word)).collect();
    if order.is_empty() {
        let needed = ORDERED.contains(&name);
        return needed
            .then(|| format!("{name}: the head of {root} has no section {SECTION:?}"))
            .into_iter()
            .collect();
    }
    judge(name, &order, &places, &modules.arrows())
}

fn judge(name: &str, order: &[&str], places: &BTreeSet<String>, arrows: &[Arrow]) -> Vec<String> {
    let place_of = |module: &str| {
        let holds = |known: &str| {
            module == known || module.strip_prefix(known).is_some_and(|rest| rest.starts_with("::"))
        };
        let all = order.iter().enumerate().filter(|(_, known)| holds(known));
        all.max_by_key(|(_, known)| known.len()).map(|(place, _)| place)
    };
    let mut findings: Vec<String> = places
        .iter()
        .filter(|module| !module.contains("::") && place_of(module).is_none())
        .map(|module| format!("{name}: {module} has no place in the order of the modules"))
        .collect();
    for arrow in arrows {
        let (from, to) = (arrow.from.module.join("::"), arrow.to.module.join("::"));
        if let (Some(lower), Some(upper)) = (place_of(&from), place_of(&to))
            && lower < upper
        {
            findings.push(format!("{name}: {from} uses {}, but {to} stands above it", arrow.written));
        }
    }
    findings
}

/// The names between backticks in the first paragraph of the section.
fn section(head: &str) -> Vec<&str> {
    let docs = head.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim);
    let lines = docs.skip_while(|line| *line != SECTION).skip(1).skip_while(|line| line.is_empty());
    let paragraph = lines.take_while(|line| !line.is_empty() && !line.starts_with('#'));
    paragraph.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//! Words.\n//!\n//! # Order of the modules\n//!\n//! From the bottom: `low`, `high`;\n//! with \
                        `feature` `high::inner`.\n//!\n//! `other`\nmod low;";

    fn found(low: &str, high: &str) -> Vec<String> {
        let files = [
            ("lib.rs", format!("{HEAD} mod high;")),
            ("low.rs", low.to_owned()),
            ("high.rs", high.to_owned()),
        ];
        let sources: Sources = files.map(|(name, text)| (name.into(), text)).into();
        let modules = Crate::read(&sources, "lib.rs").unwrap();
        findings("x", "lib.rs", &sources, &modules)
    }

    #[test]
    fn arrows_point_down() {
        assert_eq!(section(HEAD), ["low", "high", "feature", "high::inner"]);
        assert_eq!(found("pub fn f() {}", "fn g() { crate::low::f() }"), [""; 0]);
        assert_eq!(
            found("fn f() { crate::high::g() }", "pub fn g() {}"),
            ["x: low uses crate::high::g, but high stands above it"]
        );
    }

    #[test]
    fn every_module_has_a_place() {
        let sources: Sources = [("lib.rs", format!("{HEAD} mod late {{}}")), ("low.rs", String::new())]
            .map(|(name, text)| (name.into(), text))
            .into();
        let modules = Crate::read(&sources, "lib.rs").unwrap();
        assert_eq!(
            findings("x", "lib.rs", &sources, &modules),
            ["x: late has no place in the order of the modules"]
        );
    }
}
