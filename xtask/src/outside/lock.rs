//! The lock file of the programs: what ours has stands there as in ours, so that it is built once for both; what they
//! alone use stays at the versions that were written down last.

use std::collections::BTreeSet;
use std::path::Path;

/// What begins a package.
const PACKAGE: &str = "[[package]]\n";

/// Writes the lock file of the programs, before they are built. Cargo takes out of it what nobody needs.
pub(super) fn follow(ours: &Path, theirs: &Path) -> Result<(), String> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let joined = joined(&read(ours)?, &read(theirs)?);
    std::fs::write(theirs, joined).map_err(|error| format!("{}: {error}", theirs.display()))
}

/// All packages of ours, and those of theirs whose names ours does not know.
fn joined(ours: &str, theirs: &str) -> String {
    let known: BTreeSet<&str> = ours.split(PACKAGE).filter_map(name).collect();
    let further =
        theirs.split(PACKAGE).filter(|package| name(package).is_some_and(|name| !known.contains(name)));
    let mut joined = ours.trim_end().to_owned();
    for package in further {
        joined.push_str("\n\n");
        joined.push_str(PACKAGE);
        joined.push_str(package.trim_end());
    }
    joined.push('\n');
    joined
}

fn name(package: &str) -> Option<&str> {
    package.lines().next()?.strip_prefix("name = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn ours_goes_first_and_what_is_theirs_alone_stays() {
        let package =
            |name: &str, version: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let head = "version = 4\n\n";
        let ours = format!("{head}{}\n{}", package("bytes", "1.2.0"), package("tower", "0.5.0"));
        let theirs = format!("{head}{}\n{}", package("axum", "0.8.0"), package("bytes", "1.1.0"));
        assert_eq!(joined(&ours, &theirs), format!("{ours}\n{}", package("axum", "0.8.0")));
        assert_eq!(joined(&ours, &ours), ours);
    }
}
