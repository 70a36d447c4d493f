use super::*;

fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let sources = files.iter().map(|&(name, text)| (name.into(), text.to_owned())).collect();
    let arrows = Crate::read(&sources, "lib.rs").unwrap().arrows();
    let shown = |arrow: Arrow| format!("{} -> {}", arrow.from.file.display(), arrow.to.file.display());
    let mut shown: Vec<String> = arrows.into_iter().map(shown).collect();
    shown.dedup();
    shown
}

#[test]
fn a_declaration_or_reexport_is_no_arrow() {
    let found = arrows(&[
        ("lib.rs", "mod a; mod b; pub use a::inner::One;"),
        ("a/mod.rs", "pub(crate) mod inner; pub(crate) use inner::{One, Two as Three};"),
        ("a/inner.rs", "pub struct One; pub(crate) struct Two;"),
        ("b.rs", "use crate::a::{One, Three}; fn f(_: One, _: Three) {}"),
    ]);
    assert_eq!(found, ["b.rs -> a/inner.rs"]);
}

#[test]
fn names_are_followed_through_modules_globs_and_macros() {
    let found = arrows(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "pub(crate) fn one() {} pub(crate) enum Two { Three }"),
        ("b.rs", "use crate::a; fn f() { a::one() }"),
        ("c.rs", "use crate::a::*; fn f() -> bool { matches!(0, Two::Three) }"),
        ("d.rs", "fn f() { println!(\"{}\", super::a::one()) }"),
    ]);
    assert_eq!(found, ["b.rs -> a.rs", "c.rs -> a.rs", "d.rs -> a.rs"]);
}

#[test]
fn a_module_is_a_part_of_those_above_it() {
    let found = arrows(&[
        ("lib.rs", "mod a; mod b; pub struct Root;"),
        (
            "a.rs",
            "mod child; pub(crate) struct Parent; pub(crate) mod kind { pub const X: u8 = 0; } mod inline { use super::Parent; fn f(_: Parent) {} }",
        ),
        (
            "a/child.rs",
            "use super::Parent; impl Parent { fn f(_: crate::Root) { super::kind::X; } } pub(super) fn g() {}",
        ),
        ("b.rs", "fn f(_: crate::a::Parent) {}"),
    ]);
    assert_eq!(found, ["b.rs -> a.rs"]);
}

#[test]
fn tests_and_other_crates_do_not_count() {
    let found = arrows(&[
        ("lib.rs", "mod a; mod bytes; #[cfg(test)] mod tests;"),
        (
            "a.rs",
            "use std::fmt; use ::bytes::Bytes; #[cfg(test)] mod tests { use crate::bytes::X; } fn f(_: Bytes) {}",
        ),
        ("bytes.rs", "pub(crate) struct X;"),
    ]);
    assert_eq!(found, [""; 0]);
}
