//! What `--data` sends.

use std::path::PathBuf;

use bytes::Bytes;
use godwit_client::BodySource;

/// Where `--data` takes the body from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    Text(Bytes),
}

impl Source {
    /// Reads the argument: `@-`, `@FILE`, or the body itself.
    pub(super) fn parse(text: &str) -> Result<Source, String> {
        match text.strip_prefix('@') {
            None => Ok(Source::Text(Bytes::copy_from_slice(text.as_bytes()))),
            Some("-") => Ok(Source::Stdin),
            Some("") => Err("--data @: expected a file name or - after @".to_owned()),
            Some(path) => Ok(Source::File(PathBuf::from(path))),
        }
    }

    /// What the body is, if no header says so.
    pub(super) fn content_type(&self) -> &'static str {
        match self {
            Source::Text(_) => "application/x-www-form-urlencoded",
            Source::File(_) | Source::Stdin => "application/octet-stream",
        }
    }

    pub(super) fn body(&self) -> BodySource {
        match self {
            Source::Text(text) => BodySource::bytes(text.clone()),
            Source::File(path) => BodySource::file(path),
            Source::Stdin => BodySource::reader(std::io::stdin()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_says_where_from() {
        assert_eq!(Source::parse("a=b"), Ok(Source::Text(Bytes::from_static(b"a=b"))));
        assert_eq!(Source::parse("@-"), Ok(Source::Stdin));
        assert_eq!(Source::parse("@x.bin"), Ok(Source::File("x.bin".into())));
        assert!(Source::parse("@").is_err());
    }
}
