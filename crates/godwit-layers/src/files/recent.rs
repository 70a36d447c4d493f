//! Answers that were made a moment ago, for requests that had arrived by then.
//!
//! Requests come in batches, and many of a batch are often for the same file. The first has the system asked; that is done
//! when all of the batch have arrived, and so the answer is as new for the others as one of their own. Nothing is answered
//! from here to a request that came later: what has changed is seen at once.
//!
//! Each thread has its own, which is small: what is not asked for again within a batch is of no use.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;

use crate::coding::Accepted;

/// Answers that a thread keeps, and bytes of their paths and contents.
const MOST: usize = 64;
const MOST_BYTES: usize = 1 << 20;
/// Clients choose the paths; longer ones are not kept.
const LONGEST_PATH: usize = 1 << 10;

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

static NEXT_FOLDER: AtomicU64 = AtomicU64::new(0);

/// A folder's number, which no other has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FolderNumber(u64);

impl FolderNumber {
    pub(super) fn next() -> FolderNumber {
        FolderNumber(NEXT_FOLDER.fetch_add(1, Ordering::Relaxed))
    }
}

/// A whole file, as it is answered with status 200.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) content: Bytes,
}

#[derive(Debug, Default)]
struct Recent {
    /// By the path that was asked for.
    answers: HashMap<Box<str>, Known>,
    bytes: usize,
}

#[derive(Debug)]
struct Known {
    folder: FolderNumber,
    /// What the client takes, where that matters.
    accepted: Option<Accepted>,
    /// The system was asked after this.
    since: Instant,
    answer: Answer,
}

/// The answer to a request that had arrived at `arrived`.
pub(super) fn find(
    folder: FolderNumber,
    path: &str,
    accepted: Option<Accepted>,
    arrived: Instant,
) -> Option<Answer> {
    RECENT.with_borrow(|recent| {
        let known = recent.answers.get(path)?;
        let fits = known.folder == folder && known.accepted == accepted && known.since >= arrived;
        fits.then(|| known.answer.clone())
    })
}

/// Keeps an answer, for which the system was asked after `since`.
pub(super) fn keep(
    folder: FolderNumber,
    path: &str,
    accepted: Option<Accepted>,
    since: Instant,
    answer: Answer,
) {
    if path.len() > LONGEST_PATH {
        return;
    }
    RECENT.with_borrow_mut(|recent| {
        let bytes = answer.content.len().saturating_add(path.len());
        if recent.answers.len() >= MOST || recent.bytes.saturating_add(bytes) > MOST_BYTES {
            *recent = Recent::default();
        }
        recent.bytes = recent.bytes.saturating_add(bytes);
        let replaced = recent.answers.insert(path.into(), Known { folder, accepted, since, answer });
        let before = replaced.map_or(0, |known| known.answer.content.len().saturating_add(path.len()));
        recent.bytes = recent.bytes.saturating_sub(before);
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn answer(content: &'static [u8]) -> Answer {
        Answer { headers: HeaderMap::new(), content: Bytes::from_static(content) }
    }

    #[test]
    fn only_what_had_arrived_is_answered() {
        let (folder, now) = (FolderNumber::next(), godwit_text::instant_now());
        keep(folder, "/a", None, now, answer(b"a"));
        let at = |path: &str, arrived| find(folder, path, None, arrived).map(|answer| answer.content);
        assert_eq!(at("/a", now).unwrap(), "a");
        assert!(at("/a", now + Duration::from_nanos(1)).is_none(), "it came later");
        assert!(at("/b", now).is_none());
        assert!(find(FolderNumber::next(), "/a", None, now).is_none(), "another folder");
        let others = Some(Accepted::of(&HeaderMap::new()));
        assert!(find(folder, "/a", others, now).is_none(), "another coding");
        keep(folder, "/a", None, now, answer(b"new"));
        assert_eq!(at("/a", now).unwrap(), "new");
    }

    #[test]
    fn a_thread_keeps_little() {
        let (folder, now) = (FolderNumber::next(), godwit_text::instant_now());
        static CONTENT: [u8; 64 << 10] = [0; 64 << 10];
        for number in 0..1000 {
            keep(folder, &format!("/{number}"), None, now, answer(if number < 500 { &CONTENT } else { b"" }));
            RECENT.with_borrow(|recent| {
                let of = |path: &str, known: &Known| path.len() + known.answer.content.len();
                let bytes: usize = recent.answers.iter().map(|(path, known)| of(path, known)).sum();
                assert_eq!(bytes, recent.bytes);
                assert!(bytes <= MOST_BYTES && recent.answers.len() <= MOST);
            });
            assert!(find(folder, &format!("/{number}"), None, now).is_some());
        }
        let long = "/".repeat(LONGEST_PATH + 1);
        keep(folder, &long, None, now, answer(b""));
        assert!(find(folder, &long, None, now).is_none());
    }
}
