//! The short program that the library guide shows.

use std::process::Command;

#[test]
fn hello_says_that_all_is_well() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_hello")).env("XDG_DATA_HOME", folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "SERVING\n", "{errors}");
}
