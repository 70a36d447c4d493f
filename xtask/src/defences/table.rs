//! The table of defences.

use std::path::Path;
use toml::{Table, Value};

/// Where the table is.
const FILE: &str = "xtask/defences.toml";

/// A rule that keeps an attack off, and the test that shows it.
#[derive(Debug, Clone)]
pub(super) struct Defence {
    /// The attack, in plain words, with the published vulnerabilities that taught it.
    pub(super) name: String,
    pub(super) file: String,
    /// What the file says, once,
    pub(super) defence: String,
    /// and what it says without the defence.
    pub(super) without: String,
    pub(super) package: String,
    /// The features to build the package with, beside its own.
    pub(super) features: Option<String>,
    /// The file of `tests` that the test is in; none if it lies beside the code.
    pub(super) tests: Option<String>,
    /// The test's name, with its modules.
    pub(super) test: String,
}

/// All of them.
pub(super) fn read(root: &Path) -> Result<Vec<Defence>, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    parse(&text).map_err(|why| format!("{FILE}: {why}"))
}

fn parse(text: &str) -> Result<Vec<Defence>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let rows = table.get("defence").and_then(Value::as_array).ok_or("no [[defence]]")?;
    rows.iter().map(row).collect()
}

fn row(row: &Value) -> Result<Defence, String> {
    let optional = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let required = |key: &str| optional(key).ok_or_else(|| format!("no {key:?} in {row:?}"));
    Ok(Defence {
        name: required("name")?,
        file: required("file")?,
        defence: required("defence")?,
        without: required("without")?,
        package: required("package")?,
        features: optional("features"),
        tests: optional("tests"),
        test: required("test")?,
    })
}

impl Defence {
    /// Whether the defence is where the table says, and the test exists.
    pub(super) fn check(&self, root: &Path) -> Result<(), String> {
        let wrong = |why: String| Err(format!("{FILE}: {:?}: {why}", self.name));
        let text = std::fs::read_to_string(super::at(root, &self.file)).unwrap_or_default();
        let found = text.matches(self.defence.as_str()).count();
        if found != 1 {
            return wrong(format!("{} has {found} times, not once:\n{}", self.file, self.defence));
        }
        let name = self.test.rsplit("::").next().unwrap_or(&self.test);
        let folder = root.join("crates").join(&self.package);
        let declared = format!("fn {name}(");
        if !mentions(&folder.join("src"), &declared) && !mentions(&folder.join("tests"), &declared) {
            return wrong(format!("no test {name} in {}", self.package));
        }
        Ok(())
    }

    /// Which of the package's test programs has the test, and the features that it needs.
    pub(super) fn target(&self) -> Vec<&str> {
        let mut words = self.tests.as_deref().map_or(vec!["--lib"], |tests| vec!["--test", tests]);
        words.extend(self.features.as_deref().into_iter().flat_map(|features| ["--features", features]));
        words
    }
}

/// Whether a file of a folder, or of those in it, contains this.
fn mentions(folder: &Path, what: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.filter_map(Result::ok).map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            mentions(&path, what)
        } else {
            std::fs::read_to_string(&path).is_ok_and(|text| text.contains(what))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_needs_its_parts_and_the_code_its_defence() {
        let text = "[[defence]]\nname = 'a'\nfile = 'xtask/src/defences/table.rs'\ndefence = 'const FILE'\n\
                    without = 'const LIFE'\npackage = 'p'\ntest = 'm::t'\n";
        let rows = parse(text).unwrap();
        assert_eq!(rows[0].target(), ["--lib"]);
        assert!(parse("").is_err());
        assert!(parse(&text.replace("test =", "tests =")).is_err());
        // It is said more than once, here.
        assert!(rows[0].check(&crate::shell::root()).unwrap_err().contains("times"));
    }
}
