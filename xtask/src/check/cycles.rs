//! No two files of a crate need one another, directly or over others: each can be read before the next.

use super::modules::{Arrow, Crate};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files that can all be reached from one another.
struct Cycle<'a> {
    files: BTreeSet<&'a Path>,
    /// One arrow for each pair of files.
    arrows: Vec<&'a Arrow>,
}

/// Every cycle of every crate of ours.
pub(crate) fn findings<'a>(crates: impl Iterator<Item = (&'a str, &'a Crate)>) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, modules) in crates {
        let arrows = modules.arrows();
        findings.extend(cycles(&arrows).iter().map(|cycle| cycle.describe(name)));
    }
    findings
}

impl Cycle<'_> {
    fn describe(&self, name: &str) -> String {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let mut text = format!("these files need one another: {name} {}", files.join(" "));
        for arrow in &self.arrows {
            let (from, to) = (arrow.from.file.display(), arrow.to.file.display());
            text.push_str(&format!("\n    {from} -> {to}: {}", arrow.written));
        }
        text
    }
}

/// The groups of files that can be reached from one another.
fn cycles(arrows: &[Arrow]) -> Vec<Cycle<'_>> {
    let mut next: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for arrow in arrows {
        next.entry(&arrow.from.file).or_default().insert(&arrow.to.file);
    }
    let reach: BTreeMap<&Path, BTreeSet<&Path>> =
        next.keys().map(|&file| (file, reachable(&next, file))).collect();
    let mut cycles: Vec<Cycle<'_>> = Vec::new();
    for (&file, others) in &reach {
        if !others.contains(file) || cycles.iter().any(|cycle| cycle.files.contains(file)) {
            continue;
        }
        let comes_back = |other: &&Path| reach.get(*other).is_some_and(|back| back.contains(file));
        let files: BTreeSet<&Path> = others.iter().copied().filter(comes_back).collect();
        let mut inside: Vec<&Arrow> = arrows
            .iter()
            .filter(|arrow| {
                files.contains(arrow.from.file.as_path()) && files.contains(arrow.to.file.as_path())
            })
            .collect();
        inside.dedup_by(|one, other| one.from.file == other.from.file && one.to.file == other.to.file);
        cycles.push(Cycle { files, arrows: inside });
    }
    cycles
}

/// Every file that can be reached from this one, itself only if a way leads back.
fn reachable<'a>(next: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Path> = next.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_ways_back_are_not_needed() {
        let files = |text: &str| {
            let sources = [
                ("lib.rs", "mod a; mod b; mod c; mod d;"),
                ("a.rs", "pub fn a() { super::b::b() }"),
                ("b.rs", text),
                ("c.rs", "pub fn c() { super::a::a() }"),
                ("d.rs", "pub fn d() { super::c::c() }"),
            ];
            let sources = sources.map(|(name, text)| (name.into(), text.to_owned())).into();
            let arrows = Crate::read(&sources, "lib.rs").unwrap().arrows();
            let found: Vec<String> = cycles(&arrows).iter().map(|cycle| cycle.describe("x")).collect();
            found
        };
        assert_eq!(files("pub fn b() {}"), [""; 0]);
        let found = files("pub fn b() { super::c::c() }");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].lines().next(), Some("these files need one another: x a.rs b.rs c.rs"));
        assert_eq!(found[0].lines().count(), 4);
    }
}
