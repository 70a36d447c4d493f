//! What a person is told of many downloads: what becomes of each, which failures are the same, and a summary.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use godwit_text::{duration, instant_now, size};

use super::Remark;
use super::samples::Samples;
use super::tally::Tally;
use super::timing::{Timing, rate_in_words, version_name};
use crate::error::Error;
use crate::route::Route;
use crate::target::{Origin, Target};

/// Failures told one by one while URLs are fetched again and again.
const TOLD: u64 = 5;

/// An error about a URL of this server in one line, with what may help.
pub type Words = fn(&Error, &Origin) -> String;

/// Makes lines, without line ends, of what happens.
#[non_exhaustive]
pub struct Narrator {
    /// Tells which way each URL takes, and where it goes on. Default false.
    pub verbose: bool,
    /// Tells nothing but failures. Default false.
    pub quiet: bool,
    /// Tells how long each took. Default false.
    pub timing: bool,
    /// They are fetched again and again to be measured. Default false.
    pub measures: bool,
    total: u64,
    words: Words,
    begun: Instant,
    so_far: Mutex<(Tally, Samples)>,
}

impl Narrator {
    /// For so many downloads, which begin now.
    #[must_use]
    pub fn new(total: u64, words: Words) -> Narrator {
        Narrator {
            verbose: false,
            quiet: false,
            timing: false,
            measures: false,
            total,
            words,
            begun: instant_now(),
            so_far: Mutex::default(),
        }
    }

    /// A request goes out on this connection.
    #[must_use]
    pub fn on_route(&self, target: &Target, route: &Route) -> Option<String> {
        let name = version_name(route.version);
        self.verbose.then(|| {
            let again = route.again.map(|why| format!(" again, as {why}")).unwrap_or_default();
            match route.is_new {
                true => format!("{target}: {name}{again}: {}", route.reason),
                false => format!("{target}: {name}{again}, on a connection that was there"),
            }
        })
    }

    /// What comes is the rest of something that an earlier run began.
    #[must_use]
    pub fn on_continued(&self, target: &Target, offset: u64, length: Option<u64>) -> Option<String> {
        let of = length.map(|length| format!(" of {}", size(length))).unwrap_or_default();
        self.verbose.then(|| format!("{target}: going on after {}{of}", size(offset)))
    }

    /// Something worth knowing that is no failure.
    #[must_use]
    pub fn on_remark(&self, target: &Target, remark: &Remark) -> Option<String> {
        let text = match remark {
            Remark::AlreadyWhole => "there is nothing more of it: it is whole".to_owned(),
            Remark::Redirects(error) => (self.words)(error, target.origin()),
        };
        (!self.quiet).then(|| format!("{target}: {text}"))
    }

    /// A download is over.
    #[must_use]
    pub fn on_done(&self, target: &Target, timing: &Timing, outcome: &Result<(), Error>) -> Vec<String> {
        let (tally, samples) = &mut *self.so_far();
        let mut lines = Vec::new();
        if let Err(error) = outcome {
            let enough = self.measures && tally.failed >= TOLD;
            if !enough && !tally.is_known(target.origin(), error) {
                lines.push(format!("{target}: {}", (self.words)(error, target.origin())));
            }
        }
        if self.timing {
            lines.push(format!("{target}: {timing}"));
        }
        tally.add(timing, outcome.is_ok());
        if self.measures {
            samples.add(timing, outcome.is_ok());
        }
        lines
    }

    /// Bytes that have come.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.so_far().0.bytes
    }

    /// The figures, if they are measured.
    #[must_use]
    pub fn table(&self) -> Option<String> {
        self.measures.then(|| self.so_far().1.table())
    }

    /// Whether nothing has failed.
    #[must_use]
    pub fn all_well(&self) -> bool {
        self.so_far().0.failed == 0
    }

    /// All are through: what remains to be said of failures.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let (tally, _) = &*self.so_far();
        let alike = |(origin, more): (&Origin, u64)| {
            let urls = if more == 1 { "URL" } else { "URLs" };
            format!("{origin}: {more} more {urls} failed for the same reason")
        };
        let mut lines: Vec<String> = tally.known().map(alike).collect();
        if tally.failed > 0 && self.total > 1 {
            lines.push(format!("{} of {} URLs failed", tally.failed, self.total));
        }
        lines
    }

    /// What was fetched, and how fast: `3 URLs, 1.5 MiB in 2.0s, 768 KiB/s`.
    #[must_use]
    pub fn summary(&self) -> String {
        let (tally, _) = &*self.so_far();
        let elapsed = self.begun.elapsed();
        let files = if tally.fetched == 1 { String::new() } else { format!("{} URLs, ", tally.fetched) };
        let rate = rate_in_words(tally.bytes, elapsed).map(|rate| format!(", {rate}")).unwrap_or_default();
        format!("{files}{} in {}{rate}", size(tally.bytes), duration(elapsed))
    }

    /// Somebody ended it.
    #[must_use]
    pub fn interrupted(&self) -> String {
        let (tally, _) = &*self.so_far();
        let left = self.total.saturating_sub(tally.fetched.saturating_add(tally.failed));
        match self.total {
            1 => "interrupted".to_owned(),
            total => format!("interrupted; {left} of {total} URLs were left"),
        }
    }

    fn so_far(&self) -> MutexGuard<'_, (Tally, Samples)> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Narrator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Narrator").field("total", &self.total).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn failures_and_what_is_left_are_counted() {
        let mut narrator = Narrator::new(3, |error, _| error.text().to_owned());
        let target = Target::parse("https://a.example/x").unwrap();
        let failure = || Err(Error::new(ErrorKind::Status, "the server answered 404".to_owned()));
        let said = narrator.on_done(&target, &Timing::begin(), &failure());
        assert_eq!(said, ["https://a.example/x: the server answered 404"]);
        assert_eq!(narrator.interrupted(), "interrupted; 2 of 3 URLs were left");
        narrator.timing = true;
        let said = narrator.on_done(&target, &Timing::begin(), &Ok(()));
        assert!(matches!(said.as_slice(), [line] if line.contains("total")), "{said:?}");
        assert_eq!(
            (narrator.failures(), narrator.all_well()),
            (vec!["1 of 3 URLs failed".to_owned()], false)
        );
        assert!(narrator.summary().starts_with("0 B in "), "{}", narrator.summary());
        assert_eq!(narrator.table(), None);
    }

    #[test]
    fn only_so_many_failures_are_told_while_measuring() {
        let mut narrator = Narrator::new(20, |_, _| "failed".to_owned());
        narrator.measures = true;
        let target = Target::parse("https://a.example/x").unwrap();
        let failure = || Err(Error::new(ErrorKind::Status, String::new()));
        let told = (0..20).map(|_| narrator.on_done(&target, &Timing::begin(), &failure()).len());
        assert_eq!(told.sum::<usize>() as u64, TOLD);
        assert!(narrator.table().is_some());
    }
}
