//! What the person at the terminal is told: progress, errors, timings, a summary. All on the standard error.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_client::download::{Samples, Tally, Timing, rate_in_words, version_name};
use godwit_client::{Error, Route, Target};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::arguments::OutputArguments;
use super::plan::{Destination, Plan};
use super::remedy::in_words;
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
    so_far: Mutex<(Tally, Samples)>,
}

/// Failures told one by one while a URL is fetched again and again.
const TOLD: u64 = 5;

impl Report {
    pub(super) fn new(plan: &Plan, output: &OutputArguments) -> Report {
        let (quiet, verbose, timing) = (output.quiet, output.verbose, output.timing);
        let total = plan.rounds.count();
        let measures = plan.measures;
        let to_stdout = measures
            || plan.items.iter().any(|item| item.destination == Destination::Stdout)
            || plan.exchange.print_head;
        let watched = !quiet && std::io::stderr().is_terminal();
        let in_the_way = to_stdout && std::io::stdout().is_terminal();
        let bar = (watched && !in_the_way).then(|| new_bar(total));
        let summary = watched && !to_stdout;
        let so_far = Mutex::default();
        let counts_bytes = total == 1;
        let begun = instant_now();
        Report { begun, bar, counts_bytes, quiet, verbose, timing, summary, measures, total, so_far }
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
            let name = version_name(route.version);
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
            let origin = target.origin();
            let enough = self.measures && self.so_far().0.failed >= TOLD;
            if !enough && !self.so_far().0.is_known(origin, error) {
                self.print(&format!("godwit: {target}: {}", in_words(error, origin)));
            }
        }
        if self.timing {
            self.print(&format!("godwit: {target}: {timing}"));
        }
        let mut so_far = self.so_far();
        let (tally, samples) = &mut *so_far;
        tally.add(timing, outcome.is_ok());
        if self.measures {
            samples.add(timing, outcome.is_ok());
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
        let so_far = self.so_far();
        let (tally, samples) = &*so_far;
        if self.measures {
            let _ = std::io::stdout().lock().write_all(samples.table().as_bytes());
        }
        for (origin, more) in tally.known() {
            let urls = if more == 1 { "URL" } else { "URLs" };
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
        let tally = &self.so_far().0;
        let left = self.total.saturating_sub(tally.fetched + tally.failed);
        let text = if self.total == 1 {
            String::new()
        } else {
            format!("; {left} of {} URLs were left", self.total)
        };
        eprint(&format!("godwit: interrupted{text}"));
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprint(line)),
            None => eprint(line),
        }
    }

    fn so_far(&self) -> MutexGuard<'_, (Tally, Samples)> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
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

fn summary(urls: u64, bytes: u64, elapsed: Duration) -> String {
    let files = if urls == 1 { String::new() } else { format!("{urls} URLs, ") };
    let rate = rate_in_words(bytes, elapsed).map(|rate| format!(", {rate}")).unwrap_or_default();
    format!("{files}{} in {}{rate}", size(bytes), duration(elapsed))
}
