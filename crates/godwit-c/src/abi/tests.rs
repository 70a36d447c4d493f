//! A C compiler, asked through the header for every size, offset and constant.

use super::{CONSTANTS, LAYOUTS, STATUSES};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const HEAD: &str = r#"
#include <stdio.h>
#include "godwit.h"
#define SIZE(type) printf("size %s %zu\n", #type, sizeof(type));
#define FIELD(type, member) \
    printf("field %s.%s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member));
#define VALUE(name) printf("value %s %llu\n", #name, (unsigned long long)(name));
int main(void) {
"#;

/// What the compiler answers; nothing where there is none.
fn ask(program: &str) -> Option<Vec<String>> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let folder = tempfile::tempdir().unwrap();
    let (source, built) = (folder.path().join("questions.c"), folder.path().join("questions"));
    std::fs::write(&source, program).unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new(&compiler);
    let Ok(output) = command.arg("-I").arg(headers).arg(&source).arg("-o").arg(&built).output() else {
        assert!(std::env::var_os("CI").is_none(), "there has to be a C compiler here");
        eprintln!("SKIPPED: there is no C compiler {compiler:?}, so that nothing was compared with C");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&built).output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn c_sees_what_rust_says() {
    let (mut program, mut rust) = (HEAD.to_owned(), Vec::new());
    for (name, size, fields) in LAYOUTS {
        writeln!(program, "SIZE({name})").unwrap();
        rust.push(format!("size {name} {size}"));
        for (field, offset, size) in *fields {
            writeln!(program, "FIELD({name}, {field})").unwrap();
            rust.push(format!("field {name}.{field} {offset} {size}"));
        }
    }
    for (name, value) in CONSTANTS {
        writeln!(program, "VALUE(GODWIT_{name})").unwrap();
        rust.push(format!("value GODWIT_{name} {value}"));
    }
    program.push_str("return 0; }\n");
    if let Some(c) = ask(&program) {
        assert_eq!(rust, c);
    }
}

/// The header without its comments.
fn header() -> String {
    let text = include_str!("../../include/godwit.h");
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("*/").map_or("", |(_, code)| code))
}

#[test]
fn rust_knows_every_constant_and_struct_of_the_header() {
    let header = header();
    let declared = header.lines().filter_map(|line| line.trim().split_once(" = "));
    let declared: BTreeSet<&str> = declared.filter_map(|(name, _)| name.strip_prefix("GODWIT_")).collect();
    let known: BTreeSet<&str> = CONSTANTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, known);
    let statuses = known.iter().filter(|name| **name == "OK" || name.starts_with("ERROR_"));
    let statuses = statuses.filter(|name| !name.starts_with("ERROR_FLAG"));
    assert_eq!(statuses.count(), STATUSES.len());
    let structs: BTreeSet<&str> =
        header.lines().filter_map(|line| line.strip_prefix("typedef struct ")?.strip_suffix(" {")).collect();
    assert_eq!(structs, LAYOUTS.iter().map(|(name, ..)| *name).collect());
}
