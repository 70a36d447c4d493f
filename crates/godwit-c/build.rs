//! The name that programs look for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgodwit.so.0");
        // Its threads stay until the process ends, and so has their code to.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
