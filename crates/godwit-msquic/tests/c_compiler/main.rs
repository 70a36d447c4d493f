//! A C compiler, asked through `include/msquic.h` and `include/msquicp.h` for every size, offset, bit and constant of the
//! Rust types, and whether functions take what they take. The program that asks is made of the names in the tables of
//! [`godwit_msquic::abi`], and of nothing else.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod spelling;

use godwit_msquic::abi::layout::{Constants, Layout};
use godwit_msquic::abi::{CONSTANTS, LAYOUTS};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that are declared and are no constants: what is empty, and the name of a type.
const NO_CONSTANTS: [&str; 6] =
    ["FALSE", "TRUE", "GODWIT_MSQUIC_H", "GODWIT_MSQUICP_H", "QUIC_API", "QUIC_STATUS"];

/// What stands before the questions. A bit-field has no address: its bits are those that are set when 1 is taken from 0.
const HEAD: &str = r#"
#include <stdio.h>
#include <string.h>
#include "msquic.h"
#include "msquicp.h"

#define SIZE(type) printf("size %s %zu\n", #type, sizeof(type));
#define FIELD(type, member) \
    printf("field %s.%s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member));
#define VALUE(name) printf("value %s %llu\n", #name, (unsigned long long)(name));
#define TYPE(type, member, expected) printf("type %s.%s %d\n", #type, #member, \
    __builtin_types_compatible_p(__typeof__(((type *)0)->member), expected));
#define BITS(type, member) { type it; memset(&it, 0, sizeof(it)); it.member--; bits(#type, #member, &it, sizeof(it)); }

static void bits(const char *type, const char *member, const void *it, size_t size) {
    const unsigned char *bytes = it;
    size_t first = 0, width = 0;
    while (first < size * 8 && !(bytes[first / 8] >> first % 8 & 1)) first++;
    while (first + width < size * 8 && bytes[(first + width) / 8] >> (first + width) % 8 & 1) width++;
    printf("bits %s.%s %zu %zu\n", type, member, first, width);
}

int main(void) {
"#;

/// The questions, and the answers that the Rust types give.
fn questions() -> (String, Vec<String>) {
    let (mut program, mut answers) = (HEAD.to_owned(), Vec::new());
    let mut ask = |question: String, answer: String| {
        writeln!(program, "{question}").unwrap();
        answers.push(answer);
    };
    for Layout { c_name, size, fields, bits } in LAYOUTS {
        ask(format!("SIZE({c_name})"), format!("size {c_name} {size}"));
        for field in *fields {
            let name = field.c_name;
            let answer = format!("field {c_name}.{name} {} {}", field.offset, field.size);
            ask(format!("FIELD({c_name}, {name})"), answer);
        }
        for field in *bits {
            let name = field.c_name;
            let answer = format!("bits {c_name}.{name} {} {}", field.first, field.width);
            ask(format!("BITS({c_name}, {name})"), answer);
        }
    }
    for Constants { c_type, size, values } in CONSTANTS {
        if !c_type.is_empty() {
            ask(format!("SIZE({c_type})"), format!("size {c_type} {size}"));
        }
        for (name, value) in *values {
            ask(format!("VALUE({name})"), format!("value {name} {value}"));
        }
    }
    for (c_name, member, spelled) in spelling::members() {
        let question = format!("TYPE({c_name}, {member}, __typeof__({spelled}))");
        ask(question, format!("type {c_name}.{member} 1"));
    }
    program.push_str("return 0; }\n");
    (program, answers)
}

/// What a C compiler answers with the headers of a folder; nothing where there is no compiler.
fn ask(program: &str, headers: &Path) -> Option<Vec<String>> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let folder = tempfile::tempdir().unwrap();
    let (source, built) = (folder.path().join("questions.c"), folder.path().join("questions"));
    std::fs::write(&source, program).unwrap();
    let output = Command::new(&compiler)
        .args([
            "-std=gnu11",
            "-DQUIC_API_ENABLE_PREVIEW_FEATURES",
            "-DQUIC_API_ENABLE_INSECURE_FEATURES",
            "-I",
        ])
        .arg(headers)
        .arg(&source)
        .arg("-o")
        .arg(&built)
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: there is no C compiler {compiler:?}, so that nothing was compared with C");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&built).output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

fn compare(headers: &Path) {
    let (program, rust) = questions();
    let Some(c) = ask(&program, headers) else { return };
    let differences: Vec<String> = rust
        .iter()
        .zip(&c)
        .filter(|(rust, c)| rust != c)
        .map(|(rust, c)| format!("Rust: {rust}\n   C: {c}"))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(rust.len(), c.len());
}

fn our_headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

#[test]
fn a_c_compiler_sees_what_the_rust_types_say() {
    compare(&our_headers());
}

/// With `MSQUIC_INCLUDE` set, the same with other headers for this interface, which lie in that folder.
#[test]
fn so_it_does_with_other_headers_where_they_are_named() {
    if let Some(folder) = std::env::var_os("MSQUIC_INCLUDE") {
        compare(Path::new(&folder));
    }
}

#[test]
fn the_headers_declare_no_constant_that_rust_does_not_know() {
    let known: BTreeSet<&str> =
        CONSTANTS.iter().flat_map(|group| group.values).map(|(name, _)| *name).chain(NO_CONSTANTS).collect();
    let mut declared = 0;
    for header in ["msquic.h", "msquicp.h"] {
        let text = std::fs::read_to_string(our_headers().join(header)).unwrap();
        for line in text.lines().map(str::trim) {
            let name = match (line.strip_prefix("#define "), line.split_once(" = ")) {
                (Some(rest), _) => rest.split([' ', '(']).next().filter(|name| {
                    // Macros that take something are no constants.
                    !rest[name.len()..].starts_with('(') && !name.starts_with("MsQuic")
                }),
                (None, Some((name, _))) => Some(name),
                (None, None) => None,
            };
            if let Some(name) = name {
                assert!(known.contains(name), "{header} declares {name}");
                declared += 1;
            }
        }
    }
    assert!(declared > 300, "{declared} constants were found in the headers");
}
