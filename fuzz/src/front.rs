//! What people write for `godwit serve`: configuration files, and addresses on the command line. Each function panics if
//! what is read does not hold together, and returns whether it was understood.

use super::scratch;
use godwit_front::config::{Scrutiny, read, upstream_url};
use godwit_front::parse_address;

/// A configuration file: it is used, or there are problems, each a line of its own.
pub fn config(bytes: &[u8]) -> bool {
    let file = scratch::file("godwit.toml", bytes).expect("a file");
    let (settings, findings) = read(&file, Scrutiny::Text);
    assert_eq!(settings.is_some(), findings.problems.is_empty(), "{findings:?}");
    let name = file.display().to_string();
    for line in findings.lines() {
        assert!(line.starts_with(&name), "{line:?}");
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
    settings.is_some()
}

/// An address to listen on, or the URL of an upstream: what was understood reads the same again.
pub fn addresses(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let address = parse_address(text);
    if let Ok(address) = &address {
        assert_eq!(parse_address(&address.to_string()).as_ref(), Ok(address));
    }
    let url = upstream_url(text);
    if let Ok(url) = &url {
        assert_eq!(upstream_url(url).as_ref(), Ok(url));
    }
    address.is_ok() || url.is_ok()
}
