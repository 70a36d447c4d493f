//! Which traces a folder keeps: the newest, as far as their number and size permit. Strangers who begin connections would
//! otherwise fill the disk.
//!
//! Only what has a name as traces have is looked at, whoever has written it; what other processes write meanwhile is not seen.

use super::{CLIENT, SERVER};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::SystemTime;

/// How many there may be, and bytes in all of them together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// The traces in a folder, if their number is limited.
#[derive(Debug, Default)]
pub(super) struct Kept {
    most: Option<Most>,
    /// In the order in which they were begun.
    by_age: BTreeMap<u64, String>,
    by_name: HashMap<String, File>,
    next: u64,
    bytes: u64,
}

#[derive(Debug)]
struct File {
    age: u64,
    bytes: u64,
}

impl Kept {
    /// What is there already, of former processes too. A folder that cannot be read is taken for empty.
    pub(super) fn of(folder: &Path, most: Option<Most>) -> Self {
        let mut kept = Kept { most, ..Kept::default() };
        if most.is_none() {
            return kept;
        }
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_trace(name))?;
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), name, metadata.len()))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        for (_, name, bytes) in files {
            kept.add(&name, bytes);
        }
        kept
    }

    /// So many more bytes are in the trace of this name, which may be a new one.
    pub(super) fn add(&mut self, name: &str, bytes: u64) {
        if self.most.is_none() {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(file) = self.by_name.get_mut(name) {
            file.bytes = file.bytes.saturating_add(bytes);
            return;
        }
        let age = self.next;
        self.next = self.next.saturating_add(1);
        self.by_age.insert(age, name.to_owned());
        self.by_name.insert(name.to_owned(), File { age, bytes });
    }

    /// Whether there is a trace of this name, as far as is known: where all are kept, always.
    pub(super) fn has(&self, name: &str) -> bool {
        self.most.is_none() || self.by_name.contains_key(name)
    }

    /// The trace of this name begins anew.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(file) = self.by_name.remove(name) {
            self.by_age.remove(&file.age);
            self.bytes = self.bytes.saturating_sub(file.bytes);
        }
    }

    /// The next one that has to go.
    pub(super) fn too_much(&mut self) -> Option<String> {
        let most = self.most?;
        if self.by_name.len() <= most.files && self.bytes <= most.bytes {
            return None;
        }
        let (_, name) = self.by_age.first_key_value()?;
        let name = name.clone();
        self.forget(&name);
        Some(name)
    }
}

/// Whether a file has the name of a trace: a connection id in hexadecimal digits, and the end that was watched.
fn is_trace(name: &str) -> bool {
    let id = name.strip_suffix(CLIENT).or_else(|| name.strip_suffix(SERVER));
    id.is_some_and(|id| id.len() <= 40 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("godwit-oldest-go-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, seconds: u64| {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            file.set_len(10).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        };
        for (name, seconds) in [
            ("b_server.sqlog", 2),
            ("a_client.sqlog", 1),
            ("c_server.sqlog", 3),
            ("notes.sqlog", 0),
            ("x", 0),
        ] {
            write(name, seconds);
        }
        let mut kept = Kept::of(&folder, Some(Most { files: 3, bytes: 100 }));
        assert_eq!((kept.bytes, kept.too_much()), (30, None));
        kept.add("d_server.sqlog", 10);
        assert_eq!((kept.too_much().as_deref(), kept.too_much()), (Some("a_client.sqlog"), None));
        kept.add("d_server.sqlog", 70);
        assert_eq!((kept.too_much(), kept.bytes), (None, 100));
        kept.add("c_server.sqlog", 1);
        assert_eq!((kept.too_much().as_deref(), kept.bytes), (Some("b_server.sqlog"), 91));
        kept.forget("d_server.sqlog");
        assert_eq!((kept.bytes, kept.by_age.len(), kept.too_much()), (11, 1, None));
        kept.add("c_server.sqlog", 100);
        assert_eq!(
            (kept.too_much().as_deref(), kept.bytes),
            (Some("c_server.sqlog"), 0),
            "however new it is"
        );
        let mut unlimited = Kept::of(&folder, None);
        unlimited.add("e_server.sqlog", u64::MAX);
        assert!(unlimited.too_much().is_none() && unlimited.by_name.is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
