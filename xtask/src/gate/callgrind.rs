//! Running a program under callgrind and adding up what our own functions cost.

use crate::shell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Instructions executed in functions of Godwit's crates while the program's measured function runs.
pub(super) fn own_instructions(program: &Path, path: &str) -> Result<u64, String> {
    let out = std::env::temp_dir().join(format!("godwit-gate-{}-{path}.out", std::process::id()));
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind", "--toggle-collect=*measured_*", "--dump-line=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .arg(path);
    let printed = shell::output(&mut command);
    let profile = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    printed?;
    let total = sum_own(&profile.map_err(|error| format!("callgrind wrote no profile: {error}"))?);
    if total == 0 { Err(format!("callgrind saw no function of ours on the path {path}")) } else { Ok(total) }
}

/// Adds up the self cost of the functions that are ours, from the profile's text.
fn sum_own(profile: &str) -> u64 {
    let mut names: BTreeMap<String, bool> = BTreeMap::new();
    let (mut own, mut inclusive, mut total) = (false, false, 0_u64);
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            // Names are given once in full, as "(7) name", and later as "(7)".
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            own = if name.is_empty() {
                names.get(id).copied().unwrap_or(false)
            } else {
                let ours = name.contains("godwit");
                names.insert(id.to_owned(), ours);
                ours
            };
        } else if let Some(name) = line.strip_prefix("cfn=") {
            if let Some((id, name)) = name.split_once(' ') {
                names.insert(id.to_owned(), name.contains("godwit"));
            }
        } else if line.starts_with("calls=") {
            // The next line holds the callee's cost, which is counted where the callee stands.
            inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            if own && !inclusive {
                total += cost;
            }
            inclusive = false;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_self_cost_counts() {
        let profile = "fn=(1) godwit_transport::a\n0 10\ncfn=(2) memcpy\ncalls=1 0\n0 100\n0 5\n\
                       fn=(2)\n0 100\nfn=(3) other\n0 7\nfn=(1)\n0 1\n";
        assert_eq!(sum_own(profile), 16);
    }
}
