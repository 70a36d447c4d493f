//! Reading a crate's files into modules.

use super::super::items::{attributes, is_for_tests, name_of};
use super::{Crate, Import, Module, ModuleId};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

/// The text of each file below the folder of a crate's sources.
pub(crate) type Sources = BTreeMap<PathBuf, String>;

/// Reads a crate from its root file on.
pub(super) fn from_root(sources: &Sources, root: &str) -> Result<Crate, String> {
    let mut result = Crate { files: vec![root.into()], modules: vec![Module::default()] };
    let syntax = syntax(sources, Path::new(root))?;
    Reader { result: &mut result, sources }.items(0, &syntax.items, Path::new(""))?;
    Ok(result)
}

struct Reader<'a> {
    result: &'a mut Crate,
    sources: &'a Sources,
}

impl Reader<'_> {
    /// Takes a module's items; `folder` is where the files of its children lie.
    fn items(&mut self, id: ModuleId, items: &[Item], folder: &Path) -> Result<(), String> {
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            if let Item::Mod(module) = item {
                self.child(id, module, folder)?;
                continue;
            }
            let known = &mut self.result.modules[id];
            known.items.extend(name_of(item).map(ToString::to_string));
            let mut collector = Collector { module: known };
            collector.visit_item(item);
        }
        Ok(())
    }

    fn child(&mut self, parent: ModuleId, module: &syn::ItemMod, folder: &Path) -> Result<(), String> {
        let name = module.ident.to_string();
        let id = self.result.modules.len();
        let mut path = self.result.modules[parent].path.clone();
        path.push(name.clone());
        let file = self.result.modules[parent].file;
        self.result.modules.push(Module { file, parent: Some(parent), path, ..Module::default() });
        self.result.modules[parent].children.insert(name.clone(), id);
        let own_folder = folder.join(&name);
        if let Some((_, items)) = &module.content {
            return self.items(id, items, &own_folder);
        }
        let beside = folder.join(format!("{name}.rs"));
        let file = match path_attribute(&module.attrs) {
            Some(other) => folder.join(other),
            None if self.sources.contains_key(&beside) => beside,
            None => own_folder.join("mod.rs"),
        };
        let syntax = syntax(self.sources, &file)?;
        self.result.modules[id].file = self.result.files.len();
        self.result.files.push(file);
        self.items(id, &syntax.items, &own_folder)
    }
}

fn syntax(sources: &Sources, file: &Path) -> Result<syn::File, String> {
    let text = sources.get(file).ok_or_else(|| format!("{}: no such file", file.display()))?;
    syn::parse_file(text).map_err(|error| format!("{}: {error}", file.display()))
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = &attribute.meta.require_name_value().ok()?.value;
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else { return None };
    Some(text.value())
}

/// Collects what the code of one module names.
struct Collector<'a> {
    module: &'a mut Module,
}

impl Collector<'_> {
    fn imports(&mut self, tree: &UseTree, before: &[String], is_reexport: bool) {
        let mut add = |name: Option<String>, path: Vec<String>| {
            self.module.imports.push(Import { name, path, is_reexport });
        };
        let with = |ident: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(ident.to_string());
            path
        };
        match tree {
            UseTree::Path(tree) => self.imports(&tree.tree, &with(&tree.ident), is_reexport),
            UseTree::Name(tree) if tree.ident == "self" => add(before.last().cloned(), before.to_vec()),
            UseTree::Name(tree) => add(Some(tree.ident.to_string()), with(&tree.ident)),
            UseTree::Rename(tree) if tree.ident == "self" => {
                add(Some(tree.rename.to_string()), before.to_vec());
            }
            UseTree::Rename(tree) => add(Some(tree.rename.to_string()), with(&tree.ident)),
            UseTree::Glob(_) => add(None, before.to_vec()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, before, is_reexport);
                }
            }
        }
    }

    /// Paths inside a macro's arguments, which nobody has parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.named(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Group(group) => {
                    self.named(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.named(&mut path);
                    colons = 0;
                }
            }
        }
        self.named(&mut path);
    }

    fn named(&mut self, path: &mut Vec<String>) {
        // A single word of a macro may be anything; types and constants are capitalised.
        let counts = path.len() > 1 || path.iter().any(|name| name.starts_with(char::is_uppercase));
        let path = std::mem::take(path);
        if counts {
            self.module.named.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_some() {
            return;
        }
        let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
        self.imports(&item.tree, &[], is_reexport);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string());
        if path.leading_colon.is_none() {
            self.module.named.push(segments.collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }
}
