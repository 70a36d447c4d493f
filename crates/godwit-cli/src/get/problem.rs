//! Why a URL was not fetched, in one line that says what was expected, what came and what to do.

use std::fmt;
use std::io;
use std::path::Path;

use crate::error::plain;

/// The reason of a failure, printed after `godwit: URL: `.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    text: String,
    /// True if it is the server as a whole that cannot be used: its other URLs fail alike.
    whole_origin: bool,
}

impl Problem {
    /// Something about one URL.
    pub(super) fn new(text: impl Into<String>) -> Problem {
        Problem { text: text.into(), whole_origin: false }
    }

    /// Something about the server that all its URLs share.
    pub(super) fn of_origin(text: impl Into<String>) -> Problem {
        Problem { whole_origin: true, ..Problem::new(text) }
    }

    /// A file or pipe that the body could not be written to.
    pub(super) fn writing(what: &dyn fmt::Display, written: u64, error: &io::Error) -> Problem {
        use io::ErrorKind::{BrokenPipe, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let problem = plain(error);
        Problem::new(match error.kind() {
            StorageFull | QuotaExceeded => format!(
                "no room left for {what} after {}; make room, or write to another disk with -o",
                crate::output::size(written),
            ),
            PermissionDenied | ReadOnlyFilesystem => {
                format!("cannot write {what}: {problem}; choose another place with -o or --output-dir")
            }
            _ if problem.starts_with("too many open files") => format!(
                "cannot write {what}: {problem}; fetch fewer at a time with --parallel, or raise `ulimit -n`"
            ),
            BrokenPipe => format!("{what} was closed by the program that reads it, after {written} bytes"),
            _ => format!("cannot write {what} after {written} bytes: {problem}"),
        })
    }

    /// A file that could not be begun.
    pub(super) fn creating(path: &Path, error: &io::Error) -> Problem {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        match (error.kind(), parent) {
            (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, Some(parent)) if !parent.is_dir() => {
                Problem::new(no_folder(parent))
            }
            _ => Problem::writing(&path.display(), 0, error),
        }
    }

    pub(super) fn is_of_origin(&self) -> bool {
        self.whole_origin
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A folder to write into that is missing, or is something else.
pub(super) fn no_folder(folder: &Path) -> String {
    let shown = folder.display();
    if folder.exists() {
        format!("expected a folder at {shown}, found something else; choose another place")
    } else {
        let word = crate::output::shell_word(&folder.to_string_lossy()).into_owned();
        format!("the folder {shown} does not exist; make it with `mkdir -p {word}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_problems_say_what_to_do() {
        let text = |kind: io::ErrorKind| Problem::writing(&"x", 5 << 20, &kind.into()).to_string();
        assert_eq!(
            text(io::ErrorKind::StorageFull),
            "no room left for x after 5 MiB; make room, or write to another disk with -o"
        );
        assert!(text(io::ErrorKind::PermissionDenied).ends_with("with -o or --output-dir"));
        assert!(text(io::ErrorKind::BrokenPipe).contains("closed by the program that reads it"));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = io::ErrorKind::NotFound.into();
        let text = Problem::creating(Path::new("/no/such folder/x"), &error).to_string();
        assert_eq!(
            text,
            "the folder /no/such folder does not exist; make it with `mkdir -p '/no/such folder'`"
        );
        // Some folders take no files, and say that there is none.
        let text = Problem::creating(&std::env::temp_dir().join("x"), &io::ErrorKind::NotFound.into());
        assert!(text.to_string().starts_with("cannot write "), "{text}");
    }
}
