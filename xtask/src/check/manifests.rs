//! What every library crate declares: what a registry asks for, that its code does not panic, and no dependency that
//! it does not use.

use super::items::is_for_tests;
use super::metadata::{Dependency, Package, Workspace};
use super::modules::Sources;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::Visit;

/// Lints by which code says that it does not panic; tests may.
const PANIC_LINTS: [&str; 5] = ["unwrap_used", "expect_used", "panic", "unreachable", "indexing_slicing"];

/// Dependencies that no code names: they are there for their features or for what they link.
const UNNAMED: &[(&str, &str)] = &[];

/// Every declaration that is missing, and every dependency that is not used.
pub(crate) fn findings(
    workspace: &Workspace,
    sources: &dyn Fn(&Path) -> Result<Sources, String>,
) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        if package.is_published {
            findings.extend(for_the_registry(package));
        }
        let product = sources(&package.folder.join("src"))?;
        if let Some(root) = product.get(Path::new("lib.rs")).filter(|_| package.is_published) {
            let missing = missing_lints(root)?;
            if !missing.is_empty() {
                findings.push(format!(
                    "{}: lib.rs does not deny clippy's {}",
                    package.name,
                    missing.join(", ")
                ));
            }
        }
        findings.extend(unused(package, &product, sources)?);
    }
    Ok(findings)
}

/// What a registry asks for.
fn for_the_registry(package: &Package) -> Vec<String> {
    let name = &package.name;
    let mut findings = Vec::new();
    for (what, is_there) in [
        ("description", !package.description.is_empty()),
        ("license", !package.license.is_empty()),
        ("keywords", (1..=5).contains(&package.keywords)),
        ("categories", (1..=5).contains(&package.categories)),
        ("README.md", package.folder.join("README.md").is_file()),
        ("rust-version", package.rust_version.is_some()),
    ] {
        if !is_there {
            findings.push(format!(
                "{name}: {what}: a registry asks for it (of keywords and categories, one to five)"
            ));
        }
    }
    let open = package.dependencies.iter().filter(|one| one.is_ours && !one.for_tests && one.version == "*");
    findings.extend(open.map(|one| format!("{name}: {} is depended upon without a version", one.name)));
    findings
}

/// The lints that a crate's root does not deny.
fn missing_lints(root: &str) -> Result<Vec<&'static str>, String> {
    let syntax = syn::parse_file(root).map_err(|error| error.to_string())?;
    // `deny(…)`, `forbid(…)`, and either of them in a `cfg_attr(not(test), …)`.
    let denied: Vec<String> = syntax
        .attrs
        .iter()
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .map(|list| (list.path.to_token_stream().to_string(), list.tokens.to_string().replace(' ', "")))
        .map(|(path, words)| match words.strip_prefix("not(test),") {
            Some(inner) if path == "cfg_attr" => inner.to_owned(),
            _ => format!("{path}({words})"),
        })
        .filter(|words| words.starts_with("deny(") || words.starts_with("forbid("))
        .flat_map(|words| words.split(['(', ',', ')']).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    Ok(PANIC_LINTS.into_iter().filter(|lint| !denied.contains(&format!("clippy::{lint}"))).collect())
}

/// Dependencies that the code does not name: those of the product in the product's code, those of tests anywhere.
fn unused(
    package: &Package,
    product: &Sources,
    sources: &dyn Fn(&Path) -> Result<Sources, String>,
) -> Result<Vec<String>, String> {
    let mut words = Words::default();
    let mut everything = String::new();
    for (file, text) in product {
        everything.push_str(text);
        if file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs") {
            continue;
        }
        words.visit_file(&syn::parse_file(text).map_err(|error| format!("{}: {error}", package.name))?);
    }
    for folder in ["tests", "examples", "benches"] {
        everything.extend(sources(&package.folder.join(folder))?.into_values());
    }
    // Examples of pages that are documentation are tests.
    let pages = everything.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages: Vec<_> = pages
        .filter(|page| page.ends_with(".md"))
        .map(|page| package.folder.join("src").join(page))
        .collect();
    everything.extend(pages.into_iter().filter_map(|page| std::fs::read_to_string(page).ok()));
    let all: BTreeSet<&str> = everything.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let is_used = |one: &Dependency| {
        let name = one.rename.as_ref().unwrap_or(&one.name).replace('-', "_");
        if one.for_tests { all.contains(name.as_str()) } else { words.0.contains(&name) }
    };
    let unnamed = |one: &Dependency| UNNAMED.contains(&(package.name.as_str(), one.name.as_str()));
    let found = package.dependencies.iter().filter(|one| !is_used(one) && !unnamed(one));
    Ok(found
        .map(|one| {
            let whose = if one.for_tests { "tests do" } else { "code does" };
            format!("{}: {} is a dependency, and the {whose} not name it", package.name, one.name)
        })
        .collect())
}

/// Every word of code that is not for tests.
#[derive(Default)]
struct Words(BTreeSet<String>);

impl Words {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => drop(self.0.insert(ident.to_string())),
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Words {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_ident(&mut self, ident: &'ast syn::Ident) {
        self.0.insert(ident.to_string());
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        self.visit_path(attribute.path());
        if let Ok(list) = attribute.meta.require_list() {
            self.tokens(list.tokens.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_are_looked_for_in_the_root() {
        let all = "#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]\n\
                   #![deny(clippy::unreachable, clippy::indexing_slicing)]";
        assert_eq!(missing_lints(all), Ok(vec![]));
        let not_in_tests = all.replace("#![deny", "#![cfg_attr(not(test), deny").replace(")]", "))]");
        assert_eq!(missing_lints(&not_in_tests), Ok(vec![]));
        assert_eq!(missing_lints("#![deny(clippy::panic)]").map(|missing| missing.len()), Ok(4));
    }

    #[test]
    fn a_dependency_is_used_where_it_is_named() {
        let dependency =
            |name: &str, for_tests| Dependency { name: name.into(), for_tests, ..Dependency::default() };
        let dependencies = vec![
            dependency("used-here", false),
            dependency("of_a_macro", false),
            dependency("of_tests", false),
            dependency("of_tests", true),
            dependency("nowhere", true),
        ];
        let package = Package { name: "x".into(), dependencies, ..Package::default() };
        let text =
            "use used_here::X; fn f() { m!(of_a_macro::Y) } #[cfg(test)] mod tests { use of_tests::Z; }";
        let product = [("lib.rs".into(), text.to_owned())].into();
        let found = unused(&package, &product, &|_| Ok(Sources::new())).unwrap();
        assert_eq!(
            found,
            [
                "x: of_tests is a dependency, and the code does not name it",
                "x: nowhere is a dependency, and the tests do not name it",
            ]
        );
    }
}
