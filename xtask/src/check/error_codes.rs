//! Whether every rule of `xtask/error-codes.toml` has the test that the table names, with its row.

use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Where the table is.
const FILE: &str = "xtask/error-codes.toml";

/// A rule that a client can break.
#[derive(Debug)]
struct Case {
    rule: String,
    /// Package, modules and name.
    test: String,
    /// The name of a row within the test.
    row: Option<String>,
}

/// Rules whose tests, or the rows of them, do not exist.
pub(super) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let cases = read(&text).map_err(|why| format!("{FILE}: {why}"))?;
    let wrong = cases.iter().filter_map(|case| {
        let why = case.check(root).err()?;
        Some(format!("{FILE}: {:?}: {why}", case.rule))
    });
    Ok(wrong.collect())
}

fn read(text: &str) -> Result<Vec<Case>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let groups = table.get("group").and_then(Value::as_array).ok_or("no [[group]]")?;
    let mut cases = Vec::new();
    for group in groups {
        let rows = group.get("cases").and_then(Value::as_array).ok_or("a group without cases")?;
        for row in rows {
            let optional = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
            let required = |key: &str| optional(key).ok_or_else(|| format!("no {key:?} in {row:?}"));
            required("rfc")?;
            required("code")?;
            cases.push(Case { rule: required("rule")?, test: required("test")?, row: optional("row") });
        }
    }
    Ok(cases)
}

impl Case {
    fn check(&self, root: &Path) -> Result<(), String> {
        let (modules, name) = self.test.rsplit_once("::").ok_or("a test has a package and a name")?;
        let (package, modules) = modules.split_once("::").ok_or("a test stands in a module")?;
        let path: PathBuf = modules.split("::").collect();
        let file = root.join("crates").join(package).join("src").join(path);
        let text = std::fs::read_to_string(file.with_extension("rs"))
            .or_else(|_| std::fs::read_to_string(file.join("mod.rs")))
            .map_err(|_| format!("there is no module {modules} in {package}"))?;
        let body = function(&text, name).ok_or_else(|| format!("there is no test {name} in {modules}"))?;
        match &self.row {
            Some(row) if !body.contains(&format!("{row:?}")) => Err(format!("{name} has no row {row:?}")),
            _ => Ok(()),
        }
    }
}

/// The text of a test, as rustfmt sets it: up to the first line that is nothing but its end.
fn function<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let declared = ["fn ", "async fn "].map(|kind| format!("#[test]\n{kind}{name}("));
    let from = declared.iter().find_map(|declared| text.split_once(declared.as_str()))?.1;
    from.split_once("\n}\n").map(|(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_needs_its_test_and_the_row_in_it() {
        let case = |test: &str, row: &str| {
            let text = format!(
                "[[group]]\nname = 'g'\ncases = [{{ rule = 'r', rfc = '1', code = 'c', test = '{test}', row = \"{row}\" }}]"
            );
            read(&text).unwrap().remove(0).check(&crate::shell::root())
        };
        let rules = "godwit-http3::connection::tests::rules";
        assert_eq!(case(&format!("{rules}::requests"), "DATA first"), Ok(()));
        for (test, row, why) in [
            (format!("{rules}::requests"), "two control streams", "no row"),
            (format!("{rules}::wishes"), "DATA first", "no test wishes"),
            ("godwit-http3::nowhere::requests".to_owned(), "DATA first", "no module"),
            ("requests".to_owned(), "DATA first", "a package and a name"),
        ] {
            assert!(case(&test, row).unwrap_err().contains(why), "{test} {row}");
        }
        assert!(read("[[group]]\nname = 'g'\ncases = [{ rule = 'r' }]").is_err());
        assert!(read("").is_err());
    }
}
