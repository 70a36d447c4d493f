//! Small files: no source file over 900 lines, no function over 100, no struct in the transport over 20
//! fields unless it is a plain record.

use crate::shell;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

const MAX_FILE_LINES: usize = 900;
const MAX_FUNCTION_LINES: usize = 100;
const MAX_FIELDS: usize = 20;

/// Every place that breaks a limit.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let root = shell::root();
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "models", "peers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    let mut findings = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            findings.push(format!("{name}: {lines} lines (at most {MAX_FILE_LINES})"));
        }
        let syntax = syn::parse_file(&text).map_err(|error| format!("{name}: {error}"))?;
        let in_transport = name.starts_with("crates/godwit-transport/");
        let mut visitor = Visitor { name: &name, in_transport, findings: &mut findings };
        visitor.visit_file(&syntax);
    }
    Ok(findings)
}

/// Every Rust file below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

struct Visitor<'a> {
    name: &'a str,
    in_transport: bool,
    findings: &'a mut Vec<String>,
}

impl Visitor<'_> {
    fn function(&mut self, name: &syn::Ident, span: proc_macro2::Span) {
        let (start, end) = (span.start().line, span.end().line);
        let lines = end + 1 - start;
        if lines > MAX_FUNCTION_LINES {
            let at = format!("{}:{start}", self.name);
            self.findings
                .push(format!("{at}: function {name} has {lines} lines (at most {MAX_FUNCTION_LINES})"));
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, item.block.span());
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, item.block.span());
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, block.span());
        }
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let (fields, line) = (item.fields.len(), item.span().start().line);
        // A record has only public fields: it holds values and owns no invariant.
        let record = item.fields.iter().all(|field| matches!(field.vis, syn::Visibility::Public(_)));
        if self.in_transport && fields > MAX_FIELDS && !record {
            let at = format!("{}:{line}", self.name);
            self.findings
                .push(format!("{at}: struct {} has {fields} fields (at most {MAX_FIELDS})", item.ident));
        }
        syn::visit::visit_item_struct(self, item);
    }
}
