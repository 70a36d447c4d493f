//! The public items of a crate, from the root on, by the paths under which others find them.

use super::super::items::{attributes, is_for_tests, name_of};
use super::super::modules::Sources;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, UseTree, Visibility};

/// A module's path below the root.
type Place = Vec<String>;

/// The lines of a crate's list.
pub(super) fn list(sources: &Sources) -> Result<Vec<String>, String> {
    let mut tree = Tree { sources, modules: BTreeMap::new(), impls: Vec::new() };
    tree.read(Vec::new(), Path::new("lib.rs"), Path::new(""))?;
    let mut list = List { tree: &tree, lines: BTreeSet::new(), open: Vec::new() };
    list.module(&[], "");
    Ok(list.lines.into_iter().collect())
}

/// The modules of a crate with their items.
struct Tree<'a> {
    sources: &'a Sources,
    modules: BTreeMap<Place, Vec<Item>>,
    /// Implementations, with the module in which they stand.
    impls: Vec<(Place, syn::ItemImpl)>,
}

impl Tree<'_> {
    fn read(&mut self, place: Place, file: &Path, folder: &Path) -> Result<(), String> {
        let text = self.sources.get(file).ok_or_else(|| format!("{}: no such file", file.display()))?;
        let syntax = syn::parse_file(text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.items(place, syntax.items, folder)
    }

    fn items(&mut self, place: Place, items: Vec<Item>, folder: &Path) -> Result<(), String> {
        let mut kept = Vec::new();
        for item in items {
            if is_for_tests(attributes(&item)) || is_hidden(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(mut module) => {
                    let name = module.ident.to_string();
                    let mut below = place.clone();
                    below.push(name.clone());
                    match module.content.take() {
                        Some((_, items)) => self.items(below, items, &folder.join(&name))?,
                        None => {
                            let beside = folder.join(format!("{name}.rs"));
                            let file: PathBuf = match self.sources.contains_key(&beside) {
                                true => beside,
                                false => folder.join(&name).join("mod.rs"),
                            };
                            self.read(below, &file, &folder.join(&name))?;
                        }
                    }
                    kept.push(Item::Mod(module));
                }
                Item::Impl(item) => self.impls.push((place.clone(), item)),
                other => kept.push(other),
            }
        }
        self.modules.insert(place, kept);
        Ok(())
    }

    /// Where a path leads that a `use` in a module names: a module, or the module and name of an item.
    fn resolve(&self, from: &[String], path: &[String]) -> Option<(Place, Option<String>)> {
        let (first, rest) = path.split_first()?;
        let mut at: Place = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.get(..from.len().checked_sub(1)?)?.to_vec(),
            name => {
                let mut below = from.to_vec();
                below.push(name.to_owned());
                if !self.modules.contains_key(&below) {
                    let own = rest.is_empty() && self.defines(from, name);
                    return own.then(|| (from.to_vec(), Some(name.to_owned())));
                }
                below
            }
        };
        for (index, name) in rest.iter().enumerate() {
            let mut below = at.clone();
            below.push(name.clone());
            if self.modules.contains_key(&below) {
                at = below;
            } else if index + 1 == rest.len() {
                return Some((at, Some(name.clone())));
            } else {
                return None;
            }
        }
        Some((at, None))
    }

    fn defines(&self, place: &[String], name: &str) -> bool {
        let items = self.modules.get(place).map(Vec::as_slice).unwrap_or_default();
        items.iter().any(|item| !matches!(item, Item::Use(_)) && name_of(item).is_some_and(|own| own == name))
    }
}

struct List<'a> {
    tree: &'a Tree<'a>,
    lines: BTreeSet<String>,
    /// Modules being listed, so that globs cannot go round.
    open: Vec<Place>,
}

impl List<'_> {
    /// Everything public in a module, under the path by which it was reached.
    fn module(&mut self, place: &[String], prefix: &str) {
        if self.open.iter().any(|open| open == place) {
            return;
        }
        self.open.push(place.to_vec());
        let tree = self.tree;
        for item in tree.modules.get(place).into_iter().flatten() {
            match item {
                Item::Use(item) if is_public(&item.vis) => self.reexport(place, &item.tree, &[], prefix),
                Item::Mod(module) if is_public(&module.vis) => {
                    let name = module.ident.to_string();
                    let below: Place = place.iter().cloned().chain([name.clone()]).collect();
                    self.lines.insert(format!("mod {prefix}{name}"));
                    self.module(&below, &format!("{prefix}{name}::"));
                }
                Item::Macro(item) if item.attrs.iter().any(|one| one.path().is_ident("macro_export")) => {
                    self.lines.extend(item.ident.as_ref().map(|name| format!("macro {name}!")));
                }
                item => self.item(item, prefix, None, false),
            }
        }
        self.open.pop();
    }

    fn reexport(&mut self, place: &[String], tree: &UseTree, before: &[String], prefix: &str) {
        let with = |ident: &syn::Ident| before.iter().cloned().chain([ident.to_string()]).collect::<Place>();
        match tree {
            UseTree::Path(tree) => self.reexport(place, &tree.tree, &with(&tree.ident), prefix),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.reexport(place, tree, before, prefix))
            }
            UseTree::Name(tree) if tree.ident == "self" => {
                let name = before.last().cloned().unwrap_or_default();
                self.named(place, before, &name, prefix);
            }
            UseTree::Name(tree) => self.named(place, &with(&tree.ident), &tree.ident.to_string(), prefix),
            UseTree::Rename(tree) => self.named(place, &with(&tree.ident), &tree.rename.to_string(), prefix),
            UseTree::Glob(_) => match self.tree.resolve(place, before) {
                Some((other, None)) => self.module(&other, prefix),
                _ => drop(self.lines.insert(format!("use {prefix}* = {}::*", before.join("::")))),
            },
        }
    }

    fn named(&mut self, place: &[String], path: &[String], name: &str, prefix: &str) {
        match self.tree.resolve(place, path) {
            Some((other, None)) => {
                self.lines.insert(format!("mod {prefix}{name}"));
                self.module(&other, &format!("{prefix}{name}::"));
            }
            Some((other, Some(own))) => {
                let tree = self.tree;
                let items = tree.modules.get(&other).into_iter().flatten();
                let found: Vec<&Item> =
                    items.filter(|item| name_of(item).is_some_and(|it| *it == own)).collect();
                for item in &found {
                    self.item(item, prefix, Some(name), true);
                }
                if found.is_empty() {
                    self.through(&other, &own, name, prefix);
                }
            }
            None => drop(self.lines.insert(format!("use {prefix}{name} = {}", path.join("::")))),
        }
    }

    /// A name that the other module has itself from elsewhere.
    fn through(&mut self, other: &[String], own: &str, name: &str, prefix: &str) {
        let tree = self.tree;
        let mut paths = Vec::new();
        for item in tree.modules.get(other).into_iter().flatten() {
            if let Item::Use(item) = item {
                imports(&item.tree, &[], &mut paths);
            }
        }
        match paths.into_iter().find(|(known, _)| known == own) {
            Some((_, path)) if !self.open.iter().any(|open| open == other) => {
                self.open.push(other.to_vec());
                self.named(other, &path, name, prefix);
                self.open.pop();
            }
            _ => drop(self.lines.insert(format!("use {prefix}{name} = {}::{own}", other.join("::")))),
        }
    }

    /// One item, under another name if it is re-exported with one.
    fn item(&mut self, item: &Item, prefix: &str, name: Option<&str>, is_reexported: bool) {
        let Some(visibility) = visibility(item) else { return };
        if !is_public(visibility) && !is_reexported {
            return;
        }
        let Some(own) = name_of(item).map(ToString::to_string) else { return };
        let path = format!("{prefix}{}", name.unwrap_or(&own));
        let mut lines = Vec::new();
        let marks = marks(attributes(item));
        match item {
            Item::Const(item) => lines.push(format!("const {path}: {}", text(&item.ty))),
            Item::Static(item) => lines.push(format!("static {path}: {}", text(&item.ty))),
            Item::Fn(item) => lines.push(format!("fn {path}: {}", text(&item.sig))),
            Item::Type(item) => {
                lines.push(format!("type {path}{} = {}", text(&item.generics), text(&item.ty)))
            }
            Item::Struct(item) => {
                lines.push(format!("struct {path}{}{marks}", generics(&item.generics)));
                fields(&path, &item.fields, true, &mut lines);
            }
            Item::Union(item) => lines.push(format!("union {path}{}{marks}", generics(&item.generics))),
            Item::Enum(item) => {
                lines.push(format!("enum {path}{}{marks}", generics(&item.generics)));
                for variant in item.variants.iter().filter(|variant| !is_hidden(&variant.attrs)) {
                    let variant_path = format!("{path}::{}", variant.ident);
                    lines.push(format!("variant {variant_path}{}", self::marks(&variant.attrs)));
                    fields(&variant_path, &variant.fields, false, &mut lines);
                }
            }
            Item::Trait(item) => {
                let bounds = text(&item.supertraits);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                lines.push(format!("trait {path}{}{bounds}{marks}", generics(&item.generics)));
                lines.extend(item.items.iter().filter_map(|one| trait_item(&path, one)));
            }
            _ => {}
        }
        if matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Type(_)) {
            self.implementations(&own, &path, &mut lines);
        }
        self.lines.extend(lines);
    }

    /// Public functions and traits of a type, wherever they are implemented.
    fn implementations(&self, own: &str, path: &str, lines: &mut Vec<String>) {
        for (_, item) in &self.tree.impls {
            let syn::Type::Path(ty) = &*item.self_ty else { continue };
            if ty.path.segments.last().is_none_or(|last| last.ident != own) {
                continue;
            }
            if let Some((_, of, _)) = &item.trait_ {
                lines.push(format!("impl {path}: {}", text(of)));
                continue;
            }
            for one in &item.items {
                match one {
                    syn::ImplItem::Fn(one)
                        if is_public(&one.vis) && !is_hidden(&one.attrs) && !is_for_tests(&one.attrs) =>
                    {
                        lines.push(format!("fn {path}::{}: {}", one.sig.ident, text(&one.sig)));
                    }
                    syn::ImplItem::Const(one) if is_public(&one.vis) && !is_hidden(&one.attrs) => {
                        lines.push(format!("const {path}::{}: {}", one.ident, text(&one.ty)));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn fields(path: &str, fields: &syn::Fields, only_public: bool, lines: &mut Vec<String>) {
    for (index, field) in fields.iter().enumerate() {
        if (!only_public || is_public(&field.vis)) && !is_hidden(&field.attrs) {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            lines.push(format!("field {path}.{name}: {}", text(&field.ty)));
        }
    }
}

fn trait_item(path: &str, item: &syn::TraitItem) -> Option<String> {
    Some(match item {
        syn::TraitItem::Fn(one) => {
            let provided = if one.default.is_some() { " (provided)" } else { "" };
            format!("fn {path}::{}: {}{provided}", one.sig.ident, text(&one.sig))
        }
        syn::TraitItem::Type(one) => format!("type {path}::{}: {}", one.ident, text(&one.bounds)),
        syn::TraitItem::Const(one) => format!("const {path}::{}: {}", one.ident, text(&one.ty)),
        _ => return None,
    })
}

/// The names that a `use` brings in, and their paths.
fn imports(tree: &UseTree, before: &[String], found: &mut Vec<(String, Place)>) {
    let with = |ident: &syn::Ident| before.iter().cloned().chain([ident.to_string()]).collect::<Place>();
    match tree {
        UseTree::Path(tree) => imports(&tree.tree, &with(&tree.ident), found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, before, found)),
        UseTree::Name(tree) => found.push((tree.ident.to_string(), with(&tree.ident))),
        UseTree::Rename(tree) => found.push((tree.rename.to_string(), with(&tree.ident))),
        UseTree::Glob(_) => {}
    }
}

/// What a user depends on beside the shape: derived traits, and whether it may grow.
fn marks(attributes: &[Attribute]) -> String {
    let mut marks = String::new();
    for attribute in attributes {
        if attribute.path().is_ident("non_exhaustive") {
            marks.push_str(" #[non_exhaustive]");
        } else if attribute.path().is_ident("derive")
            && let Ok(list) = attribute.meta.require_list()
        {
            marks.push_str(&format!(" #[derive({})]", text(&list.tokens)));
        }
    }
    marks
}

fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return None,
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.meta.require_list().is_ok_and(|list| text(&list.tokens) == "hidden")
    })
}

fn generics(generics: &syn::Generics) -> String {
    let condition = generics.where_clause.as_ref().map(|clause| format!(" {}", text(clause)));
    format!("{}{}", text(generics), condition.unwrap_or_default())
}

/// Code on one line, with the spaces that people would write.
fn text(code: &impl ToTokens) -> String {
    let mut text = code.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        (" :", ":"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
        (" ;", ";"),
        ("->", "-> "),
        (" ?", "?"),
        ("? ", "?"),
        (",)", ")"),
        (", )", ")"),
    ] {
        text = text.replace(from, to);
    }
    while text.contains("  ") {
        text = text.replace("  ", " ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_is_listed_by_the_path_that_leads_there() {
        let sources: Sources = [
            (
                "lib.rs",
                "mod inner; pub mod open; pub use inner::{Hidden as Shown, helper}; pub use open::*; pub use bytes::Bytes;\n\
                 pub fn free<T: Copy>(of: &[T], n: usize) -> Option<T> { None }",
            ),
            (
                "inner.rs",
                "#[derive(Debug)] #[non_exhaustive] pub struct Hidden { pub a: Vec<u8>, b: u8 }\n\
                 impl Hidden { pub fn new() -> Self { todo!() } fn own(&self) {} #[doc(hidden)] pub fn x() {} }\n\
                 impl Drop for Hidden { fn drop(&mut self) {} } pub fn helper() {} pub struct Unseen;",
            ),
            ("open.rs", "pub enum Choice { One, Two(u8) } pub trait Face: Send { fn f(&self) -> u8 { 0 } }"),
        ]
        .map(|(name, text)| (name.into(), text.to_owned()))
        .into();
        let lines = list(&sources).unwrap();
        let expected = [
            "enum Choice",
            "enum open::Choice",
            "field Choice::Two.0: u8",
            "field Shown.a: Vec<u8>",
            "field open::Choice::Two.0: u8",
            "fn Face::f: fn f(&self) -> u8 (provided)",
            "fn Shown::new: fn new() -> Self",
            "fn free: fn free<T: Copy>(of: &[T], n: usize) -> Option<T>",
            "fn helper: fn helper()",
            "fn open::Face::f: fn f(&self) -> u8 (provided)",
            "impl Shown: Drop",
            "mod open",
            "struct Shown #[derive(Debug)] #[non_exhaustive]",
            "trait Face: Send",
            "trait open::Face: Send",
            "use Bytes = bytes::Bytes",
            "variant Choice::One",
            "variant Choice::Two",
            "variant open::Choice::One",
            "variant open::Choice::Two",
        ];
        assert_eq!(lines, expected);
    }
}
