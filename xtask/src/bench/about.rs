//! What is measured: the commit, and the versions of the others. It is written down beside the programs, so that they
//! can be measured where there is neither the source nor what built them.

use crate::shell;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The name of the file.
const FILE: &str = "about.json";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct About {
    pub(super) commit: String,
    pub(super) title: String,
    /// Of the commit, RFC 3339 in UTC.
    pub(super) time: String,
    versions: Map<String, Value>,
}

impl About {
    /// Of what is checked out.
    pub(super) fn of_source() -> Result<Self, String> {
        let git = |format: &str| {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", &format!("--format={format}")]);
            Ok::<_, String>(shell::output(git.env("TZ", "UTC").current_dir(shell::root()))?.trim().to_owned())
        };
        let mut versions = Map::new();
        for (folder, package) in [
            ("rust", "quinn"),
            ("s2n", "s2n-quic"),
            ("quiche", "quiche"),
            ("tquic", "tquic"),
            ("tcp", "hyper"),
            ("tcp", "rustls"),
        ] {
            let file = shell::root().join("peers").join(folder).join("Cargo.lock");
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let version =
                in_lock(&text, package).ok_or_else(|| format!("{}: no {package}", file.display()))?;
            versions.insert(package.into(), version.into());
        }
        let file = shell::root().join("peers/go/go.mod");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let version = in_module(&text, "github.com/quic-go/quic-go").ok_or("go.mod: no quic-go")?;
        versions.insert("quic-go".into(), version.into());
        Ok(Self { commit: git("%H")?, title: git("%s")?, time: git("%cd")?, versions })
    }

    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join(FILE);
        let text = fs::read_to_string(&file).map_err(|error| {
            format!("{}: {error}; `cargo xtask bench --build-only DIR` makes it", file.display())
        })?;
        Self::parse(&text).ok_or_else(|| format!("{}: not what was expected", file.display()))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), String> {
        let file = folder.join(FILE);
        fs::write(&file, self.text()).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn text(&self) -> String {
        let Self { commit, title, time, versions } = self;
        json!({ "commit": commit, "title": title, "time": time, "versions": versions }).to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(text).ok()?;
        let word = |name: &str| Some(json.get(name)?.as_str()?.to_owned());
        let versions = json.get("versions")?.as_object()?.clone();
        Some(Self { commit: word("commit")?, title: word("title")?, time: word("time")?, versions })
    }

    /// Which version of another's package it is.
    pub(super) fn version(&self, package: &str) -> &str {
        self.versions.get(package).and_then(Value::as_str).unwrap_or("of unknown version")
    }
}

/// The version of a package in a lock file of cargo's.
fn in_lock<'a>(text: &'a str, package: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next()
}

/// The version of a module in a file of Go's.
fn in_module<'a>(text: &'a str, module: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().any(|word| word == module))?;
    line.split_whitespace().last().map(|version| version.trim_start_matches('v'))
}

/// The machine that measures.
pub(super) fn machine() -> Value {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "cpu": cpu.map_or("unknown", |(_, name)| name.trim()),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_lock_files() {
        let lock = "[[package]]\nname = \"quinn-proto\"\nversion = \"0.11.19\"\n\n[[package]]\nname = \"quinn\"\nversion = \"0.11.12\"\n";
        assert_eq!(in_lock(lock, "quinn"), Some("0.11.12"));
        assert_eq!(in_lock(lock, "quin"), None);
        let module = "module peer\n\nrequire github.com/quic-go/quic-go v0.65.0\n";
        assert_eq!(in_module(module, "github.com/quic-go/quic-go"), Some("0.65.0"));
        assert_eq!(in_module(module, "github.com/quic-go/qpack"), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut about =
            About { commit: "c".into(), title: "a \"title\"".into(), time: "t".into(), ..About::default() };
        about.versions.insert("quinn".into(), "1.2".into());
        assert_eq!(About::parse(&about.text()).unwrap(), about);
        assert_eq!(about.version("quinn"), "1.2");
    }
}
