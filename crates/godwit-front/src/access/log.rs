//! The log: what a line looks like, and who writes it.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroU8;
use std::path::Path;
use std::sync::Arc;

use godwit_body::ClientNetwork;
use godwit_proxy::Reason;
use godwit_report::record::{ClientAddress, Connection, Record, Request, Response, Upstream};

use super::entry::Entry;
use super::format;
use super::target::Target;
use super::writer::Writer;
use crate::FrontError;
use crate::settings::{self, LogFormat, LogTarget};
use godwit_certificates::Notices;
use godwit_text::Style;
use godwit_text::plain_error;

/// Where requests are logged, and how. Clones share the writer.
#[derive(Clone, Debug)]
pub(crate) struct Log(Option<Arc<Sink>>);

#[derive(Debug)]
struct Sink {
    writer: Writer,
    format: LogFormat,
    client_address: settings::ClientAddress,
    style: Style,
}

thread_local! {
    /// The line being made: its room is used again.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Log {
    /// No lines.
    pub(crate) fn off() -> Log {
        Log(None)
    }

    /// For lines of so many shards. Those on the standard output are in this style.
    ///
    /// # Errors
    /// If the file cannot be opened for writing.
    pub(crate) fn new(
        settings: &settings::AccessLog,
        shards: NonZeroU8,
        style: Style,
        notices: &Notices,
    ) -> Result<Log, FrontError> {
        let target = match &settings.target {
            LogTarget::None => return Ok(Log::off()),
            LogTarget::Stdout => Target::stdout(notices.clone()),
            LogTarget::File(path) => {
                Target::file(path, notices.clone()).map_err(|error| cannot_open(path, &error))?
            }
        };
        let style = match settings.target {
            LogTarget::Stdout => style,
            _ => Style::PLAIN,
        };
        let client_address = settings.client_address;
        Ok(Log(Some(Arc::new(Sink {
            writer: Writer::new(target, shards),
            format: settings.format,
            client_address,
            style,
        }))))
    }

    /// Has the lines so far written, if that is possible within a short time.
    pub(crate) fn flush(&self) {
        if let Some(sink) = &self.0 {
            sink.writer.flush();
        }
    }

    /// Opens the file anew: somebody has moved the old one.
    pub(crate) fn reopen(&self) {
        if let Some(sink) = &self.0 {
            sink.writer.reopen();
        }
    }

    /// Nobody on the calling thread's shard gets a line written while this is held.
    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Sized + '_ {
        self.0.as_ref().map(|sink| sink.writer.hold())
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Lines are for people at a terminal.
    pub(super) fn is_in_words(&self) -> bool {
        self.0.as_ref().is_some_and(|sink| sink.format == LogFormat::Terminal)
    }

    /// Only this format says more than what is known when a body is over.
    pub(super) fn is_json(&self) -> bool {
        self.0.as_ref().is_some_and(|sink| sink.format == LogFormat::Json)
    }

    /// Writes an entry's line. Returns how many lines were lost since the last call: it may be this one.
    pub(super) fn write(&self, entry: &Entry) -> u64 {
        let Some(sink) = &self.0 else { return 0 };
        LINE.with_borrow_mut(|line| {
            line.clear();
            sink.format(entry, line);
            sink.writer.write(line)
        })
    }
}

impl Sink {
    fn format(&self, entry: &Entry, line: &mut Vec<u8>) {
        match self.format {
            LogFormat::Json => self.record(entry, |record| record.write_json(line)),
            LogFormat::Combined => {
                self.record(entry, |record| format::combined(&record, version(entry), line))
            }
            LogFormat::Terminal => format::terminal(entry, self.style, line),
        }
    }

    fn record(&self, entry: &Entry, write: impl FnOnce(Record<'_>)) {
        let Some(facts) = &entry.facts else { return };
        let client = entry.client();
        let address = entry.remote().map(|remote| remote.ip());
        let path = facts.path.unwrap_or_default();
        let known = facts.path.is_some();
        let answer = &entry.answer;
        let text = |value: &Option<http::HeaderValue>| {
            value.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let (user_agent, referer) = (text(&facts.user_agent), text(&facts.referer));
        write(Record {
            time_ms: facts.time_ms,
            client: address.and_then(|address| match self.client_address {
                settings::ClientAddress::Full => Some(ClientAddress::Full(address)),
                settings::ClientAddress::Prefix => {
                    Some(ClientAddress::Prefix(ClientNetwork::prefix(address)))
                }
                settings::ClientAddress::None => None,
            }),
            family: address.map(|address| if address.is_ipv4() { 4 } else { 6 }),
            request: Request {
                host: facts.host.as_deref(),
                method: facts.method(),
                path: facts.path(),
                protocol: entry.protocol(),
                bytes: entry.request_bytes(),
            },
            status: answer.status.map(|status| status.as_u16()),
            why_not_h3: facts.why_not_h3,
            user: entry.user(),
            arm: entry.arm(),
            connection: Connection {
                number: client.map(|client| client.number()),
                request: facts.number,
                tls_resumed: client.and_then(|client| client.tls_resumed()),
                rtt: known.then_some(path.rtt),
                lost: known.then_some(path.lost),
                retransmitted: known.then_some(path.retransmitted),
            },
            response: Response {
                bytes: answer.bytes,
                first_byte: answer.first_byte,
                last_byte: answer.last_byte,
                delivered: answer.delivered,
            },
            upstream: answer
                .upstream
                .as_ref()
                .map(|it| Upstream { address: it.upstream(), waited: it.waited() }),
            outcome: entry.outcome(),
            reason: answer.reason.map(Reason::name),
            user_agent: user_agent.as_deref(),
            referer: referer.as_deref(),
        });
    }
}

fn version(entry: &Entry) -> http::Version {
    entry.facts.as_ref().map_or(http::Version::HTTP_11, |facts| facts.version)
}

fn cannot_open(path: &Path, error: &io::Error) -> FrontError {
    let remedy = "give a file in a folder that exists and can be written, or - for the standard output";
    FrontError::file("cannot write the access log", path, plain_error(error), remedy)
}
