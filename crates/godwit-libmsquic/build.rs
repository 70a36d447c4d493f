//! The name that programs look for, and the version of its symbols.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=msquic.map");
    println!("cargo:rustc-check-cfg=cfg(versioned)");
    let (Ok(system), Ok(processor), Ok(folder)) = (
        std::env::var("CARGO_CFG_TARGET_OS"),
        std::env::var("CARGO_CFG_TARGET_ARCH"),
        std::env::var("CARGO_MANIFEST_DIR"),
    ) else {
        return;
    };
    if system != "linux" {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmsquic.so.2");
    // Its threads stay until the process ends, and so has their code to.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // The compiler brings a version script of its own, which names no version. Its own linker, which it uses on this
    // processor, takes both; GNU's does not.
    if processor == "x86_64" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={folder}/msquic.map");
        println!("cargo:rustc-cfg=versioned");
    }
}
