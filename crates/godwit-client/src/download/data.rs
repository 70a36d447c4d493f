//! What a request sends, as people write it: `@FILE`, `@-` for the standard input, or the text itself.

use std::path::PathBuf;
use std::str::FromStr;

use bytes::Bytes;

use crate::body::BodySource;

/// Where a request's body is to come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Data {
    /// This text.
    Text(Bytes),
    /// A file.
    File(PathBuf),
    /// The standard input.
    Stdin,
}

impl Data {
    /// What the body is, if no header says so.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self {
            Data::Text(_) => "application/x-www-form-urlencoded",
            Data::File(_) | Data::Stdin => "application/octet-stream",
        }
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> BodySource {
        match self {
            Data::Text(text) => BodySource::bytes(text.clone()),
            Data::File(path) => BodySource::file(path),
            Data::Stdin => BodySource::reader(std::io::stdin()),
        }
    }
}

impl FromStr for Data {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Data, Self::Err> {
        match text.strip_prefix('@') {
            None => Ok(Data::Text(Bytes::copy_from_slice(text.as_bytes()))),
            Some("-") => Ok(Data::Stdin),
            Some("") => Err("expected a file name or - after @"),
            Some(path) => Ok(Data::File(PathBuf::from(path))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_where_from() {
        assert_eq!("a=b".parse(), Ok(Data::Text(Bytes::from_static(b"a=b"))));
        assert_eq!("@-".parse(), Ok(Data::Stdin));
        assert_eq!("@x.bin".parse(), Ok(Data::File("x.bin".into())));
        assert!("@".parse::<Data>().is_err());
    }
}
