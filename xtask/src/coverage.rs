//! How many lines of the crates that read what strangers send are run by these crates' own tests.
//!
//! `cargo llvm-cov` measures it. It builds everything anew and instrumented, so it is no part of a test tier.

use crate::shell::{self, cargo};
use serde_json::Value;

/// The crates, each with the least part of its lines, in percent.
const CRATES: [(&str, f64); 4] =
    [("godwit-wire", 92.0), ("godwit-recovery", 92.0), ("godwit-transport", 92.0), ("godwit-http3", 92.0)];

/// Measures all of them, prints a table, and fails if one falls short.
pub(crate) fn run() -> Result<(), String> {
    if shell::output(cargo().args(["llvm-cov", "--version"])).is_err() {
        return Err("cargo llvm-cov is not installed (cargo install cargo-llvm-cov; rustup component add \
                    llvm-tools)"
            .into());
    }
    let file = shell::target_dir()?.join("coverage.json");
    let mut command = cargo();
    command.args(["llvm-cov", "--json", "--summary-only", "--profile", "ci", "--output-path"]).arg(&file);
    shell::run(command.args(CRATES.iter().flat_map(|(name, _)| ["--package", name])))?;
    let report = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let report: Value = serde_json::from_str(&report).map_err(|error| format!("cargo llvm-cov: {error}"))?;
    let mut short = Vec::new();
    for (name, least) in CRATES {
        let (covered, lines) = lines_of(&report, name);
        let percent = 100.0 * covered as f64 / lines.max(1) as f64;
        println!("{name:<20} {covered:>6} of {lines:>6} lines  {percent:>5.1} %");
        if percent < least {
            short.push(format!("{name}: {percent:.1} % of the lines, not {least} %"));
        }
    }
    if short.is_empty() { Ok(()) } else { Err(short.join("\n")) }
}

/// How many lines of a crate's sources were run, and how many there are; its tests do not count.
fn lines_of(report: &Value, name: &str) -> (u64, u64) {
    let folder = format!("/crates/{name}/src/");
    let files = report.pointer("/data/0/files").and_then(Value::as_array).into_iter().flatten();
    let own = files.filter(|file| {
        let path = file.get("filename").and_then(Value::as_str).unwrap_or_default();
        path.contains(&folder) && !path.split('/').any(|part| part == "tests" || part.ends_with("tests.rs"))
    });
    let figure = |file: &Value, key: &str| {
        file.pointer(&format!("/summary/lines/{key}")).and_then(Value::as_u64).unwrap_or(0)
    };
    own.fold((0, 0), |(covered, lines), file| {
        (covered + figure(file, "covered"), lines + figure(file, "count"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_crate_are_those_of_its_sources() {
        let file = |name: &str, covered: u64| serde_json::json!({ "filename": name, "summary": { "lines": { "count": 10, "covered": covered } } });
        let report = serde_json::json!({ "data": [{ "files": [
            file("/x/crates/godwit-wire/src/codec.rs", 9),
            file("/x/crates/godwit-wire/src/frame/mod.rs", 8),
            file("/x/crates/godwit-wire/src/frame/tests.rs", 10),
            file("/x/crates/godwit-wire/src/frame/tests/more.rs", 10),
            file("/x/crates/godwit-wireless/src/lib.rs", 1),
            file("/x/crates/godwit-wire/tests/corpus.rs", 1),
        ] }] });
        assert_eq!(lines_of(&report, "godwit-wire"), (17, 20));
        assert_eq!(lines_of(&report, "godwit-http3"), (0, 0));
    }
}
