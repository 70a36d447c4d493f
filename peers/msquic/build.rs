//! Links to the library for MsQuic's interface that `GODWIT_MSQUIC_LIBRARY` names, which is also the one that runs.
//!
//! The linker looks for `libmsquic.so`, and a program for the name that the library gives itself, `libmsquic.so.2`.
//! Both stand in a folder of this build and lead to the library, so that a library that is built anew is the one that
//! runs. `LD_LIBRARY_PATH` goes before that folder.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=GODWIT_MSQUIC_LIBRARY");
    let library = library();
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    for name in ["libmsquic.so", "libmsquic.so.2"] {
        let link = folder.join(name);
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).expect("the link of the last build can be removed");
        }
        std::os::unix::fs::symlink(&library, &link).expect("the folder of the build takes links");
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
}

/// The one that is named, or what `cargo build -p godwit-libmsquic` leaves with the profile "ci".
fn library() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ci/libmsquic.so");
    let library = env::var_os("GODWIT_MSQUIC_LIBRARY").map_or(beside, PathBuf::from);
    fs::canonicalize(&library).unwrap_or_else(|error| {
        panic!(
            "there is no library {}: {error}; build it, or name one in GODWIT_MSQUIC_LIBRARY",
            library.display()
        )
    })
}
