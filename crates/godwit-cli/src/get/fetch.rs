//! All URLs, so many at a time: each is a download of `godwit-client`, followed by the report.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use godwit_client::download::{self, Download, Observer, Remark, Timing};
use godwit_client::{BodySource, Client, Error, Route, Target, Versions};
use http::{HeaderMap, StatusCode, Version};

use super::plan::{Destination, Item, Plan};
use super::remedy::in_words;
use super::report::Report;
use crate::output::printable_bytes;

/// What all downloads share.
pub(super) struct Job {
    pub(super) client: Client,
    pub(super) plan: Plan,
    pub(super) report: Report,
}

/// Fetches everything.
pub(super) async fn fetch_all(job: Arc<Job>) {
    let work = job.plan.work();
    let workers = usize::try_from(work).unwrap_or(usize::MAX).min(job.plan.parallel);
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (job, next) = (Arc::clone(&job), Arc::clone(&next));
        tasks.spawn(async move {
            while let Some((item, versions)) = job.plan.task(next.fetch_add(1, Ordering::Relaxed)) {
                let (timing, outcome) = fetch(&job, item, versions).await;
                job.report.done(&item.target, &timing, outcome);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn fetch(job: &Job, item: &Item, versions: Versions) -> (Timing, Result<(), Error>) {
    let exchange = &job.plan.exchange;
    let destination = match &item.destination {
        Destination::Discard => download::Destination::Discard,
        Destination::File(path) => download::Destination::File(path.clone()),
        Destination::Stdout => {
            download::Destination::Writer { name: "the standard output".to_owned(), to: stdout() }
        }
    };
    let mut download = Download::new(item.target.clone());
    download.method = exchange.method.clone();
    download.headers = exchange.headers.clone();
    download.authority = exchange.authority.clone();
    download.body = exchange.source.as_ref().map_or_else(BodySource::empty, |source| source.body());
    download.continued = exchange.continued;
    download.redirects = exchange.redirects;
    download.max_time = exchange.max_time;
    download.versions = versions;
    download.alone = job.plan.fresh;
    let in_front = item.destination == Destination::Stdout;
    let watch = Watch { report: &job.report, target: &item.target, heads: exchange.print_head, in_front };
    download.run(&job.client, destination, &watch).await
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

    fn on_head(
        &self,
        status: StatusCode,
        version: Version,
        headers: &HeaderMap,
    ) -> Result<Option<Bytes>, Error> {
        if !self.heads {
            return Ok(None);
        }
        // A terminal would obey what a server may put there; a file shall have it as it came.
        let terminal = std::io::stdout().is_terminal();
        let head = head(status, version, headers, terminal);
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

/// The head of a response as HTTP/1.1 would write it. For a terminal with nothing in it that is not to be seen.
fn head(status: StatusCode, version: Version, headers: &HeaderMap, terminal: bool) -> Bytes {
    let mut text = match version {
        Version::HTTP_3 => format!("HTTP/3 {}\r\n", status.as_u16()),
        Version::HTTP_2 => format!("HTTP/2 {}\r\n", status.as_u16()),
        version => {
            format!("{version:?} {} {}\r\n", status.as_u16(), status.canonical_reason().unwrap_or(""))
        }
    }
    .into_bytes();
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        match terminal {
            true => text.extend_from_slice(printable_bytes(value.as_bytes()).as_bytes()),
            false => text.extend_from_slice(value.as_bytes()),
        }
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text.into()
}

fn print(head: &[u8]) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(head).and_then(|()| stdout.flush());
    printed.map_err(|error| Error::writing(&"the standard output", 0, &error))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_head_commands_no_terminal() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"a\x9b2J\xe2\x80\xaeb \xc3\xbc").unwrap());
        let of = |terminal| head(StatusCode::OK, Version::HTTP_11, &headers, terminal);
        assert_eq!(of(true), "HTTP/1.1 200 OK\r\nx-a: a\\x9b2J\\u{202e}b ü\r\n\r\n");
        assert_eq!(&of(false)[..], b"HTTP/1.1 200 OK\r\nx-a: a\x9b2J\xe2\x80\xaeb \xc3\xbc\r\n\r\n");
    }
}
