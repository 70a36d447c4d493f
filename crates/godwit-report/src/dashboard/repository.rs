//! Where commits can be looked at.

use std::fmt;
use std::str::FromStr;

/// The address of a repository's pages: a commit's page is `/commit/` and its name below it, as GitHub, GitLab and
/// Forgejo have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository(String);

/// The longest address that is taken, in bytes.
const LONGEST: usize = 500;

impl Repository {
    /// The address of a commit's page.
    #[must_use]
    pub fn commit(&self, commit: &str) -> String {
        format!("{}/commit/{commit}", self.0)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Repository {
    type Err = String;

    fn from_str(text: &str) -> Result<Repository, String> {
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        // A link of another kind could run a program in the reader's browser.
        let Some(host) = host else {
            return Err("expected an address such as https://example.com/owner/name".to_owned());
        };
        let fits = |c: char| c.is_ascii_graphic() && !"\"'<>\\^`{|}?#".contains(c);
        if host.starts_with('/') || host.is_empty() || text.len() > LONGEST || !text.chars().all(fits) {
            return Err("expected an address of letters that may stand in one, without ? and #".to_owned());
        }
        Ok(Repository(text.trim_end_matches('/').to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_pages_are_taken() {
        let repository: Repository = "https://example.com/owner/name/".parse().unwrap();
        assert_eq!(repository.commit("abc"), "https://example.com/owner/name/commit/abc");
        for wrong in [
            "",
            "javascript:alert(1)",
            "data:text/html,x",
            "example.com/x",
            "https://",
            "https:///x",
            "https://a/\"onclick=x",
            "https://a/ b",
            "https://a/?q",
            "http://a/\u{202e}",
        ] {
            assert!(wrong.parse::<Repository>().is_err(), "{wrong}");
        }
    }
}
