//! What the person at the terminal is told: progress, errors, timings, a summary. All on the standard error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_client::download::Timing;
use godwit_client::{Error, Origin, Route, Target};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::arguments::OutputArguments;
use super::plan::{Destination, Plan};
use super::remedy::in_words;
use super::repeat::{Samples, name_of};
use crate::output::{duration, instant_now, printable, size};

/// Tells what happens, and counts.
pub(super) struct Report {
    begun: Instant,
    bar: Option<ProgressBar>,
    /// The bar counts bytes of one URL, not URLs.
    counts_bytes: bool,
    quiet: bool,
    verbose: bool,
    timing: bool,
    summary: bool,
    /// Only figures are wanted.
    measures: bool,
    total: u64,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    fetched: u64,
    failed: u64,
    bytes: u64,
    /// Servers that could not be used, and how many more URLs were lost with each after the first.
    unreachable: BTreeMap<Origin, u64>,
    samples: Samples,
}

/// Failures told one by one while a URL is fetched again and again.
const TOLD: u64 = 5;

impl Report {
    pub(super) fn new(plan: &Plan, output: &OutputArguments) -> Report {
        let (quiet, verbose, timing) = (output.quiet, output.verbose, output.timing);
        let total = plan.work();
        let measures = plan.repeat.is_some();
        let to_stdout = measures
            || plan.items.iter().any(|item| item.destination == Destination::Stdout)
            || plan.exchange.print_head;
        let watched = !quiet && std::io::stderr().is_terminal();
        let in_the_way = to_stdout && std::io::stdout().is_terminal();
        let bar = (watched && !in_the_way).then(|| new_bar(total));
        let summary = watched && !to_stdout;
        let tally = Mutex::default();
        let counts_bytes = total == 1;
        let begun = instant_now();
        Report { begun, bar, counts_bytes, quiet, verbose, timing, summary, measures, total, tally }
    }

    /// What comes is the rest of something that an earlier run began.
    pub(super) fn continues(&self, target: &Target, offset: u64, length: Option<u64>) {
        if self.verbose {
            let of = length.map(|length| format!(" of {}", size(length))).unwrap_or_default();
            self.print(&format!("godwit: {target}: going on after {}{of}", size(offset)));
        }
    }

    /// A response has come, with a body of this length. `begun`: what is there already.
    pub(super) fn expect(&self, begun: u64, length: Option<u64>) {
        if let (Some(bar), Some(length), true) = (&self.bar, length, self.counts_bytes) {
            bar.set_length(begun.saturating_add(length));
            bar.set_position(begun);
            // The rate and the time left are those of this run.
            bar.reset_eta();
            bar.set_style(style("{wide_bar} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta}"));
        }
    }

    /// So many bytes have come.
    pub(super) fn advance(&self, bytes: u64) {
        if let (Some(bar), true) = (&self.bar, self.counts_bytes) {
            bar.inc(bytes);
        }
    }

    /// Something worth knowing that is no failure.
    pub(super) fn remark(&self, target: &Target, text: &str) {
        if !self.quiet {
            self.print(&format!("godwit: {target}: {text}"));
        }
    }

    /// A request goes out on this connection.
    pub(super) fn chosen(&self, target: &Target, route: &Route) {
        if self.verbose {
            let name = name_of(route.version);
            let text = match route.connect {
                Some(_) => format!("{name}: {}", route.reason),
                None => format!("{name} on the same connection"),
            };
            self.print(&format!("godwit: {target}: {text}"));
        }
    }

    /// A URL is through.
    pub(super) fn done(&self, target: &Target, timing: &Timing, outcome: Result<(), Error>) {
        if let Err(error) = &outcome {
            let enough = self.measures && self.tally().failed >= TOLD;
            let told = enough || (error.is_of_origin() && self.is_told(target.origin()));
            if !told {
                self.print(&format!("godwit: {target}: {}", in_words(error, target.origin())));
            }
        }
        if self.timing {
            self.print(&format!("godwit: {target}: {}", timing_in_words(timing)));
        }
        let mut tally = self.tally();
        tally.bytes += timing.bytes;
        if self.measures {
            tally.samples.add(timing, outcome.is_ok());
        }
        match outcome {
            Ok(()) => tally.fetched += 1,
            Err(_) => tally.failed += 1,
        }
        if let (Some(bar), false) = (&self.bar, self.counts_bytes) {
            bar.set_message(size(tally.bytes));
            bar.inc(1);
        }
    }

    /// All URLs are through. True if every one was fetched.
    pub(super) fn finish(&self) -> bool {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let tally = self.tally();
        if self.measures {
            let _ = std::io::stdout().lock().write_all(tally.samples.table().as_bytes());
        }
        for (origin, more) in tally.unreachable.iter().filter(|(_, more)| **more > 0) {
            let urls = if *more == 1 { "URL" } else { "URLs" };
            eprint(&format!("godwit: {origin}: {more} more {urls} failed for the same reason"));
        }
        if tally.failed > 0 && self.total > 1 {
            eprint(&format!("godwit: {} of {} URLs failed", tally.failed, self.total));
        } else if self.summary && tally.failed == 0 {
            eprint(&summary(tally.fetched, tally.bytes, self.begun.elapsed()));
        }
        tally.failed == 0
    }

    /// The work was interrupted.
    pub(super) fn interrupted(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let tally = self.tally();
        let left = self.total.saturating_sub(tally.fetched + tally.failed);
        let text = if self.total == 1 {
            String::new()
        } else {
            format!("; {left} of {} URLs were left", self.total)
        };
        eprint(&format!("godwit: interrupted{text}"));
    }

    /// Whether the server's failure has been printed for another URL of it.
    fn is_told(&self, origin: &Origin) -> bool {
        let mut tally = self.tally();
        if let Some(more) = tally.unreachable.get_mut(origin) {
            *more += 1;
            return true;
        }
        tally.unreachable.insert(origin.clone(), 0);
        false
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprint(line)),
            None => eprint(line),
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line on the standard error, in one piece; that nobody reads it is no reason to fail.
fn eprint(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{}\n", printable(line)).as_bytes());
}

fn new_bar(total: u64) -> ProgressBar {
    let bar = if total == 1 {
        let bar = ProgressBar::no_length();
        bar.set_style(style("{spinner} {bytes}  {binary_bytes_per_sec}"));
        bar
    } else {
        let bar = ProgressBar::new(total);
        bar.set_style(style("{wide_bar} {pos}/{len} URLs  {msg}"));
        bar
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}

fn style(template: &str) -> ProgressStyle {
    let plain = ProgressStyle::default_bar;
    plain().template(template).map_or_else(|_| plain(), |style| style.progress_chars("━╸ "))
}

fn timing_in_words(timing: &Timing) -> String {
    let mut text = match timing.connect {
        Some((dns, handshake)) => format!("dns {}, handshake {}", duration(dns), duration(handshake)),
        None => "no new connection".to_owned(),
    };
    if let Some(first_byte) = timing.first_byte {
        let _ = write!(text, ", first byte {}", duration(first_byte));
    }
    let _ = write!(text, ", total {}, {}", duration(timing.total), size(timing.bytes));
    if let Some(rate) = rate(timing.bytes, timing.total) {
        let _ = write!(text, ", {rate}/s");
    }
    if let Some(version) = timing.version {
        let _ = write!(text, ", {}", name_of(version));
    }
    text
}

fn summary(urls: u64, bytes: u64, elapsed: Duration) -> String {
    let files = if urls == 1 { String::new() } else { format!("{urls} URLs, ") };
    let rate = rate(bytes, elapsed).map(|rate| format!(", {rate}/s")).unwrap_or_default();
    format!("{files}{} in {}{rate}", size(bytes), duration(elapsed))
}

/// Bytes per second, where there is enough to divide.
fn rate(bytes: u64, elapsed: Duration) -> Option<String> {
    let seconds = elapsed.as_secs_f64();
    (bytes > 0 && seconds > 0.0).then(|| size((bytes as f64 / seconds) as u64))
}
