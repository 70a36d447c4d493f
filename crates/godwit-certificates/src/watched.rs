//! Certificate files that somebody else renews: noticed when they change, shown when they are whole.
//!
//! Both files are looked at every two seconds (size, time of change, and which file it is), and at once when told.
//! They are replaced one after the other and perhaps not in one step each, so:
//! - a change is acted on when it has stood still from one look to the next, unless told;
//! - a pair is shown only if both files can be read, are whole, belong together, and did not change meanwhile;
//!   until then the old pair stays, and the new one is tried again at every look;
//! - what is still wrong after [`LOOKS_BEFORE_NOTICE`] looks is said once.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Notices;
use super::{Identity, Slot, Store, from_files};
use crate::CertificateError;
use godwit_text::{date, unix_now};

const EVERY: Duration = Duration::from_secs(2);
/// How many looks a pair may be unusable before it is said.
const LOOKS_BEFORE_NOTICE: u32 = 3;
/// A file that changed so short a time ago may change again without its time being another.
const COARSE: Duration = Duration::from_secs(2);

/// Two files and what is known of them.
#[derive(Debug)]
pub(super) struct Watched {
    certificate: PathBuf,
    key: PathBuf,
    /// As they were when they were last read and found good.
    loaded: Stamp,
    /// They had just been changed then, and have to be read again.
    fresh: bool,
    /// A change that is not yet shown.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    stamp: Stamp,
    failures: u32,
}

/// What a look found.
#[derive(Debug)]
pub(super) enum Look {
    /// Nothing new.
    Same,
    /// Something has changed, and it is too early to say more.
    Settling,
    /// A new pair.
    New(Box<Identity>),
    /// A pair that is not usable, and has not been for some time; said once.
    Bad(String),
}

impl Watched {
    /// Reads the pair for the first time.
    ///
    /// # Errors
    /// As [`from_files`].
    pub(super) fn open(certificate: &Path, key: &Path) -> Result<(Watched, Identity), CertificateError> {
        let loaded = Stamp::of(certificate, key);
        let identity = from_files(certificate, key)?;
        let fresh = loaded.is_fresh();
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok((Watched { certificate, key, loaded, fresh, pending: None }, identity))
    }

    /// Looks at the files. `shown` is what is shown now; `told` says that they have been written.
    pub(super) fn look(&mut self, shown: &Identity, told: bool, now: i64) -> Look {
        let stamp = Stamp::of(&self.certificate, &self.key);
        if stamp == self.loaded && !self.fresh && !told {
            self.pending = None;
            return Look::Same;
        }
        let still = stamp == self.loaded || self.pending.as_ref().is_some_and(|known| known.stamp == stamp);
        if !still && !told {
            self.pending = Some(Pending { stamp, failures: 0 });
            return Look::Settling;
        }
        let outcome = self.read(shown, now);
        if Stamp::of(&self.certificate, &self.key) != stamp {
            self.pending = Some(Pending { stamp, failures: 0 });
            return Look::Settling;
        }
        match outcome {
            Ok(identity) => {
                self.pending = None;
                self.fresh = stamp.is_fresh();
                self.loaded = stamp;
                let same = identity.chain == shown.chain;
                if same { Look::Same } else { Look::New(Box::new(identity)) }
            }
            Err(problem) => self.failed(stamp, problem),
        }
    }

    fn read(&self, shown: &Identity, now: i64) -> Result<Identity, String> {
        let identity = from_files(&self.certificate, &self.key).map_err(|failure| failure.to_string())?;
        if identity.facts.not_after <= now && now < shown.facts.not_after {
            return Err(format!(
                "the new certificate {} expired on {}; put one there that is valid",
                self.certificate.display(),
                date(identity.facts.not_after),
            ));
        }
        Ok(identity)
    }

    fn failed(&mut self, stamp: Stamp, problem: String) -> Look {
        let before =
            self.pending.take().filter(|known| known.stamp == stamp).map_or(0, |known| known.failures);
        let failures = before.saturating_add(1);
        self.pending = Some(Pending { stamp, failures });
        if failures == LOOKS_BEFORE_NOTICE { Look::Bad(problem) } else { Look::Settling }
    }
}

/// The state of two files, to tell whether they have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp([Option<FileStamp>; 2]);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    /// Device, file, and the time when its name or contents changed.
    place: Option<(u64, u64, i64, i64)>,
}

impl Stamp {
    fn of(certificate: &Path, key: &Path) -> Stamp {
        let one = |path: &Path| std::fs::metadata(path).ok().map(|metadata| FileStamp::of(&metadata));
        Stamp([one(certificate), one(key)])
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "times of files are compared with the clock that made them"
    )]
    fn is_fresh(&self) -> bool {
        let now = SystemTime::now();
        let recent = |time: SystemTime| now.duration_since(time).map_or(true, |since| since < COARSE);
        self.0.iter().flatten().filter_map(|file| file.modified).any(recent)
    }
}

impl FileStamp {
    fn of(metadata: &Metadata) -> FileStamp {
        #[cfg(unix)]
        let place = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let place = None;
        FileStamp { size: metadata.len(), modified: metadata.modified().ok(), place }
    }
}

/// Looks again and again, and has the slot show what is new.
pub(super) async fn run(
    mut watched: Watched,
    slot: Arc<Slot>,
    store: Store,
    mut told: watch::Receiver<()>,
    notices: Notices,
) {
    loop {
        let told_now = tokio::select! {
            () = tokio::time::sleep(EVERY) => false,
            changed = told.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
        };
        let shown = slot.identity();
        // The files may be on a network that hangs.
        let looked = spawn_blocking(move || {
            let look = watched.look(&shown, told_now, unix_now());
            (watched, look)
        });
        let Ok((same, look)) = looked.await else { return };
        watched = same;
        match look {
            Look::Settling => {}
            Look::Same => slot.set_problem(None),
            Look::New(identity) => {
                let line = format!(
                    "new certificate for {} from {}, valid until {}",
                    identity.facts.names_in_words(),
                    watched.certificate.display(),
                    date(identity.facts.not_after),
                );
                match store.swap(&slot, *identity) {
                    Ok(()) => notices.say(&line),
                    Err(failure) => slot.set_problem(Some(failure.to_string())),
                }
            }
            Look::Bad(problem) => {
                let until = date(slot.identity().facts.not_after);
                notices.say(&format!(
                    "warning: {problem} (the certificate read before stays; it ends on {until})"
                ));
                slot.set_problem(Some(problem));
            }
        }
    }
}

#[cfg(test)]
mod tests;
