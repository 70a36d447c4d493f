//! All URLs, each a download of `godwit-client`, followed by the report.

use godwit_client::Error;
use godwit_client::download::{Batch, Destination, Download, Observer, Place, Timing};

use super::plan::Plan;
use super::report::{Report, Watch};

/// Everything that is to be fetched, and who tells of it.
pub(super) struct Job {
    pub(super) plan: Plan,
    pub(super) report: Report,
}

impl Batch for Job {
    fn count(&self) -> u64 {
        self.plan.many.rounds.count()
    }

    fn download(&self, number: u64) -> Option<(Download, Destination)> {
        self.plan.many.download(number)
    }

    fn observer(&self, number: u64) -> Box<dyn Observer + '_> {
        let Some((target, place)) = self.plan.many.item(number) else { return Box::new(()) };
        let (heads, in_front) = (self.plan.print_head, *place == Place::Stdout);
        Box::new(Watch { report: &self.report, target, heads, in_front })
    }

    fn on_done(&self, number: u64, timing: &Timing, outcome: Result<(), Error>) {
        if let Some((target, _)) = self.plan.many.item(number) {
            self.report.done(target, timing, &outcome);
        }
    }
}
