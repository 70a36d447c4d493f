//! What the person at the terminal is told: progress, errors, timings, a summary. All on the standard error.

use std::io::{IsTerminal, Write};

use bytes::Bytes;
use godwit_client::download::{Head, Narrator, Observer, Place, Remark, Timing};
use godwit_client::{Error, Route, Target};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::arguments::OutputArguments;
use super::plan::Plan;
use super::remedy::in_words;
use crate::output::{printable, size};

/// Tells what happens.
pub(super) struct Report {
    narrator: Narrator,
    bar: Option<ProgressBar>,
    /// The bar counts bytes of one URL, not URLs.
    counts_bytes: bool,
    summary: bool,
}

/// Tells of one URL while it is fetched.
pub(super) struct Watch<'a> {
    pub(super) report: &'a Report,
    pub(super) target: &'a Target,
    /// The heads of responses are printed.
    pub(super) heads: bool,
    /// Where the bodies go too.
    pub(super) in_front: bool,
}

impl Watch<'_> {
    /// The bar, if it counts the bytes of this URL.
    fn bar(&self) -> Option<&ProgressBar> {
        self.report.bar.as_ref().filter(|_| self.report.counts_bytes)
    }
}

impl Observer for Watch<'_> {
    fn on_route(&self, route: &Route) {
        self.report.print(self.report.narrator.on_route(self.target, route));
    }

    fn on_head(&self, head: &Head<'_>) -> Result<Option<Bytes>, Error> {
        if !self.heads {
            return Ok(None);
        }
        // A terminal would obey what a server may put there; a file shall have it as it came.
        let mut stdout = std::io::stdout();
        let head = head.to_text(stdout.is_terminal());
        if self.in_front {
            return Ok(Some(head));
        }
        let printed = stdout.write_all(&head).and_then(|()| stdout.flush());
        printed.map(|()| None).map_err(|error| Error::writing(&"the standard output", 0, &error))
    }

    fn on_continued(&self, offset: u64, length: Option<u64>) {
        self.report.print(self.report.narrator.on_continued(self.target, offset, length));
    }

    fn on_length(&self, begun: u64, length: Option<u64>) {
        if let (Some(bar), Some(length)) = (self.bar(), length) {
            bar.set_length(begun.saturating_add(length));
            bar.set_position(begun);
            // The rate and the time left are those of this run.
            bar.reset_eta();
            bar.set_style(style("{wide_bar} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta}"));
        }
    }

    fn on_data(&self, bytes: u64) {
        if let Some(bar) = self.bar() {
            bar.inc(bytes);
        }
    }

    fn on_remark(&self, remark: &Remark) {
        self.report.print(self.report.narrator.on_remark(self.target, remark));
    }
}

impl Report {
    pub(super) fn new(plan: &Plan, output: &OutputArguments) -> Report {
        let total = plan.many.rounds.count();
        let mut narrator = Narrator::new(total, in_words);
        (narrator.quiet, narrator.verbose, narrator.timing) = (output.quiet, output.verbose, output.timing);
        narrator.measures = plan.measures;
        let to_stdout = plan.measures
            || plan.many.items.iter().any(|(_, place)| *place == Place::Stdout)
            || plan.print_head;
        let watched = !output.quiet && std::io::stderr().is_terminal();
        let in_the_way = to_stdout && std::io::stdout().is_terminal();
        let bar = (watched && !in_the_way).then(|| new_bar(total));
        Report { narrator, bar, counts_bytes: total == 1, summary: watched && !to_stdout }
    }

    /// A URL is through.
    pub(super) fn done(&self, target: &Target, timing: &Timing, outcome: &Result<(), Error>) {
        self.print(self.narrator.on_done(target, timing, outcome));
        if let (Some(bar), false) = (&self.bar, self.counts_bytes) {
            bar.set_message(size(self.narrator.bytes()));
            bar.inc(1);
        }
    }

    /// All URLs are through. True if every one was fetched.
    pub(super) fn finish(&self) -> bool {
        self.clear();
        if let Some(table) = self.narrator.table() {
            let _ = std::io::stdout().lock().write_all(table.as_bytes());
        }
        self.print(self.narrator.failures());
        let all_well = self.narrator.all_well();
        if self.summary && all_well {
            eprint(&self.narrator.summary());
        }
        all_well
    }

    /// The work was interrupted.
    pub(super) fn interrupted(&self) {
        self.clear();
        self.print([self.narrator.interrupted()]);
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn print(&self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            let print = || eprint(&format!("godwit: {line}"));
            self.bar.as_ref().map_or_else(print, |bar| bar.suspend(print));
        }
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
