//! All URLs, each a download of `godwit-client`, followed by the report.

use std::io::{IsTerminal, Write};

use bytes::Bytes;
use godwit_client::download::{self, Batch, Download, Head, Observer, Remark, Timing};
use godwit_client::{BodySource, Error, Route, Target};

use super::plan::{Destination, Plan};
use super::remedy::in_words;
use super::report::Report;

/// Everything that is to be fetched, and who tells of it.
pub(super) struct Job {
    pub(super) plan: Plan,
    pub(super) report: Report,
}

impl Batch for Job {
    fn count(&self) -> u64 {
        self.plan.rounds.count()
    }

    fn download(&self, number: u64) -> Option<(Download, download::Destination)> {
        let (item, versions) = self.plan.task(number)?;
        let destination = match &item.destination {
            Destination::Discard => download::Destination::Discard,
            Destination::File(path) => download::Destination::File(path.clone()),
            Destination::Stdout => {
                download::Destination::Writer { name: "the standard output".to_owned(), to: stdout() }
            }
        };
        let exchange = &self.plan.exchange;
        let mut download = Download::new(item.target.clone());
        download.method = exchange.method.clone();
        download.headers = exchange.headers.clone();
        download.authority = exchange.authority.clone();
        download.body = exchange.source.as_ref().map_or_else(BodySource::empty, |source| source.body());
        download.continued = exchange.continued;
        download.redirects = exchange.redirects;
        download.max_time = exchange.max_time;
        download.versions = versions;
        download.alone = self.plan.fresh;
        Some((download, destination))
    }

    fn observer(&self, number: u64) -> Box<dyn Observer + '_> {
        let Some((item, _)) = self.plan.task(number) else { return Box::new(()) };
        let in_front = item.destination == Destination::Stdout;
        let heads = self.plan.exchange.print_head;
        Box::new(Watch { report: &self.report, target: &item.target, heads, in_front })
    }

    fn on_done(&self, number: u64, timing: &Timing, outcome: Result<(), Error>) {
        if let Some((item, _)) = self.plan.task(number) {
            self.report.done(&item.target, timing, outcome);
        }
    }
}

/// Tells the report of one URL.
struct Watch<'a> {
    report: &'a Report,
    target: &'a Target,
    /// The heads of responses are printed.
    heads: bool,
    /// Where the bodies go too.
    in_front: bool,
}

impl Observer for Watch<'_> {
    fn on_route(&self, route: &Route) {
        self.report.chosen(self.target, route);
    }

    fn on_head(&self, head: &Head<'_>) -> Result<Option<Bytes>, Error> {
        if !self.heads {
            return Ok(None);
        }
        // A terminal would obey what a server may put there; a file shall have it as it came.
        let terminal = std::io::stdout().is_terminal();
        let head = head.to_text(terminal);
        if self.in_front {
            return Ok(Some(head));
        }
        print(&head)?;
        Ok(None)
    }

    fn on_continued(&self, offset: u64, length: Option<u64>) {
        self.report.continues(self.target, offset, length);
    }

    fn on_length(&self, begun: u64, length: Option<u64>) {
        self.report.expect(begun, length);
    }

    fn on_data(&self, bytes: u64) {
        self.report.advance(bytes);
    }

    fn on_remark(&self, remark: &Remark) {
        match remark {
            Remark::AlreadyWhole => {
                self.report.remark(self.target, "there is nothing more of it: it is whole");
            }
            Remark::Redirects(error) => {
                self.report.remark(self.target, &in_words(error, self.target.origin()));
            }
            _ => {}
        }
    }
}

/// The standard output without Rust's line buffer, which would look for line ends in everything.
fn stdout() -> Box<dyn Write + Send> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        if let Ok(descriptor) = std::io::stdout().as_fd().try_clone_to_owned() {
            return Box::new(std::fs::File::from(descriptor));
        }
    }
    Box::new(std::io::stdout())
}

fn print(head: &[u8]) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(head).and_then(|()| stdout.flush());
    printed.map_err(|error| Error::writing(&"the standard output", 0, &error))
}
