//! Tests that need what not every system permits: networks and mounts of their own, devices, urgency.
//!
//! Whoever develops may do without them. Where everything is to be tested (`CI` is set), a test that cannot be made fails.
#![allow(dead_code, clippy::unwrap_used, reason = "tests, of which each program uses its part")]

use std::fmt::Display;
use std::process::Command;

/// Says that this process is alone already.
const ALONE: &str = "GODWIT_TEST_ALONE";

/// What a test needs is not to be had.
///
/// # Panics
/// Where everything is to be tested.
pub(crate) fn cannot_be_tested(why: impl Display) {
    assert!(std::env::var_os("CI").is_none(), "not permitted, and in CI nothing may be left out: {why}");
    eprintln!("skipped: {why}");
}

/// Whether this process is in a network and in mounts of its own, with a loopback, as `script` has furnished them. If not,
/// the test of this name runs in one that is, where the system permits it.
///
/// # Panics
/// If the test fails there.
pub(crate) fn is_alone(name: &str, script: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let inside = |then: &str| {
        let script = format!("ip link set lo up && {script} && {then}");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", &script, "sh"]);
        command
    };
    match inside("true").output() {
        Ok(output) if output.status.success() => {
            let mut again = inside("exec \"$@\"");
            again.arg(std::env::current_exe().unwrap());
            again.args(["--exact", name, "--nocapture"]).env(ALONE, "1");
            assert!(again.status().unwrap().success(), "{name} in namespaces of its own");
        }
        Ok(output) => cannot_be_tested(String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => cannot_be_tested(format_args!("unshare: {error}")),
    }
    false
}
