//! The modules of a crate and which of them name which, read from its sources without a compiler.
//!
//! A name is followed through `use` declarations and re-exports to the file that defines the item: a module
//! that only declares and re-exports its children is no station of any way. A module is a part of those above
//! it, so that what it takes from their files is no arrow either. What only tests name does not count.

mod read;
#[cfg(test)]
mod tests;

pub(crate) use read::Sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How far a name is followed through re-exports before it is taken for one of another crate.
const MAX_HOPS: usize = 16;

/// A module's number.
type ModuleId = usize;

/// The modules of one crate.
#[derive(Default)]
pub(crate) struct Crate {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

#[derive(Default)]
struct Module {
    /// Number of the file that holds it.
    file: usize,
    parent: Option<ModuleId>,
    /// Its path below the crate's root.
    path: Vec<String>,
    children: BTreeMap<String, ModuleId>,
    items: Vec<String>,
    imports: Vec<Import>,
    /// Paths that its code names, outside of `use`.
    named: Vec<Vec<String>>,
}

/// One name, or all names, that a `use` brings in.
struct Import {
    /// None brings in everything.
    name: Option<String>,
    path: Vec<String>,
    is_reexport: bool,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target {
    Module(ModuleId),
    Item(ModuleId),
}

/// That code of one file names an item of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: Place,
    pub(crate) to: Place,
    /// The path as it is written.
    pub(crate) written: String,
}

/// A file, and the module of it that names or is named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Relative to the folder of the sources.
    pub(crate) file: PathBuf,
    pub(crate) module: Vec<String>,
}

impl Crate {
    /// Reads the crate that begins in this file of the folder of sources.
    pub(crate) fn read(sources: &Sources, root: &str) -> Result<Self, String> {
        read::from_root(sources, root)
    }

    /// The paths of all modules below the root.
    pub(crate) fn paths(&self) -> BTreeSet<String> {
        self.modules.iter().skip(1).map(|module| module.path.join("::")).collect()
    }

    /// Every name that one file's code uses of another file.
    pub(crate) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (id, module) in self.modules.iter().enumerate() {
            let imports = module.imports.iter().filter(|import| !import.is_reexport && import.name.is_some());
            for path in imports.map(|import| &import.path).chain(&module.named) {
                let Some(Target::Item(target)) = self.resolve(id, path, 0) else { continue };
                let other = &self.modules[target];
                if other.file != module.file && !self.is_in_the_family(module, other.file) {
                    arrows.push(Arrow {
                        from: self.place(module),
                        to: self.place(other),
                        written: path.join("::"),
                    });
                }
            }
        }
        arrows.sort();
        arrows.dedup();
        arrows
    }

    /// Whether a file is one of those in which the modules above this one stand.
    fn is_in_the_family(&self, module: &Module, file: usize) -> bool {
        let above = |id: &ModuleId| self.modules[*id].parent;
        std::iter::successors(module.parent, above).any(|id| self.modules[id].file == file)
    }

    fn place(&self, module: &Module) -> Place {
        Place { file: self.files[module.file].clone(), module: module.path.clone() }
    }

    /// What a path means that is written in a module.
    fn resolve(&self, from: ModuleId, path: &[String], hops: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules[from].parent?),
            name => self.look_up(from, name, hops, None)?,
        };
        self.follow(start, rest, hops)
    }

    fn follow(&self, start: Target, rest: &[String], hops: usize) -> Option<Target> {
        let mut at = start;
        for name in rest {
            at = match (at, name.as_str()) {
                // What follows an item are its own: variants, associated functions.
                (Target::Item(_), _) => return Some(at),
                (Target::Module(id), "self") => Target::Module(id),
                (Target::Module(id), "super") => Target::Module(self.modules[id].parent?),
                (Target::Module(id), name) => self.look_up(id, name, hops, None)?,
            };
        }
        Some(at)
    }

    /// What a name means in a module; `skip` is the import that asks.
    fn look_up(&self, id: ModuleId, name: &str, hops: usize, skip: Option<ModuleId>) -> Option<Target> {
        if hops > MAX_HOPS {
            return None;
        }
        let module = &self.modules[id];
        if let Some(&child) = module.children.get(name) {
            return Some(Target::Module(child));
        }
        if module.items.iter().any(|item| item == name) {
            return Some(Target::Item(id));
        }
        for import in module.imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
            // `use bytes::bytes` would ask for itself.
            if import.path.first().is_some_and(|first| first == name) {
                continue;
            }
            if let Some(target) = self.resolve(id, &import.path, hops + 1) {
                return Some(target);
            }
        }
        for import in module.imports.iter().filter(|import| import.name.is_none()) {
            let Some(Target::Module(other)) = self.resolve(id, &import.path, hops + 1) else { continue };
            if other != id
                && Some(other) != skip
                && let Some(target) = self.look_up(other, name, hops + 1, Some(id))
            {
                return Some(target);
            }
        }
        None
    }
}
