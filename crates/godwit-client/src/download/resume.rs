//! Continuing what an earlier run left: what has come so far stands in `.NAME.godwit.part`, and beside it a note says
//! of which URL and which state of it. The server is asked for the rest only if nothing has changed there
//! ([`crate::ranges`]).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A note larger than this was not written by this program.
const MAX_NOTE: u64 = 64 << 10;

/// What a part is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) url: String,
    /// The entity tag or date of what was being fetched.
    pub(super) validator: String,
    /// How long all of it is, in bytes, where the server has told.
    #[serde(default)]
    pub(super) length: Option<u64>,
}

impl Note {
    /// The note beside a part, if it is about `url`.
    pub(super) fn read(path: &Path, url: &str) -> Option<Note> {
        let mut text = String::new();
        open_own(path, OpenOptions::new().read(true)).ok()?.take(MAX_NOTE).read_to_string(&mut text).ok()?;
        let note: Note = serde_json::from_str(&text).ok()?;
        (note.url == url && !note.validator.is_empty()).then_some(note)
    }

    /// Writes the note as a new file: what somebody else has put there is not written to.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())
    }
}

/// Opens a file that an earlier run has left under a name that others can guess. Whoever may write to the folder
/// may have put something else there: a link, a pipe, a file that has another name too or that belongs to somebody
/// else.
///
/// # Errors
/// `PermissionDenied` with the reason, if it is such a thing.
pub(super) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::PermissionDenied, what.to_owned());
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Ok(file) => file,
        #[cfg(unix)]
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(refused("it is a link")),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is no regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.nlink() > 1 {
            return Err(refused("the file has another name besides"));
        }
        #[cfg(target_os = "linux")]
        if metadata.uid() != godwit_os::user::id() {
            return Err(refused("it belongs to another user"));
        }
    }
    Ok(file)
}

/// The note that belongs to a part.
pub(super) fn note_path(part: &Path) -> PathBuf {
    part.with_extension("note")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_of_one_url() {
        let folder = tempfile::tempdir().unwrap();
        let path = note_path(&folder.path().join(".x.godwit.part"));
        let note = Note { url: "https://a/x".to_owned(), validator: "\"a\"".to_owned(), length: Some(5) };
        note.write(&path).unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), Some(note));
        assert_eq!(Note::read(&path, "https://a/y"), None);
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), None);
    }

    #[test]
    fn notes_of_earlier_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, r#"{"url":"https://a/x","validator":"\"a\""}"#).unwrap();
        assert_eq!(Note::read(&path, "https://a/x").unwrap().length, None);
    }

    #[cfg(unix)]
    #[test]
    fn what_somebody_else_has_put_there_is_left_alone() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        let note = Note { url: "https://a/x".to_owned(), validator: "\"a\"".to_owned(), length: None };
        note.write(&target).unwrap();
        symlink(&target, &link).unwrap();
        assert_eq!(Note::read(&link, "https://a/x"), None);
        fs::write(&target, "precious").unwrap();
        note.write(&link).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        let refusal = |path: &Path| open_own(path, OpenOptions::new().append(true)).unwrap_err().to_string();
        let second = folder.path().join("second");
        fs::hard_link(&target, &second).unwrap();
        assert_eq!(refusal(&second), "the file has another name besides");
        let again = folder.path().join("again");
        symlink(&target, &again).unwrap();
        assert_eq!(refusal(&again), "it is a link");
        assert_eq!(refusal(Path::new("/dev/null")), "it is no regular file");
    }
}
