//! A bar that shows how much of a long work is done.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on the standard error, where that is a terminal.
#[derive(Clone)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// For somebody's work, which is made of so and so.
    pub(crate) fn new(who: &'static str, what: &'static str) -> Bar {
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg}, {eta} to go");
        let bar = ProgressBar::new(0).with_prefix(who).with_message(what);
        Bar(style.map_or(bar.clone(), |style| bar.with_style(style)))
    }

    /// So much of so much is done.
    pub(crate) fn show(&self, done: usize, of: usize) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
    }

    /// All is done: it goes away. How many seconds it took.
    pub(crate) fn finish(&self) -> f64 {
        let took = self.0.elapsed();
        self.0.finish_and_clear();
        took.as_secs_f64()
    }
}
