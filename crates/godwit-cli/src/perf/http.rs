//! `godwit perf http`: requests to any HTTP server, and how long the answers took.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use godwit_client::Target;
use godwit_lab::perf::{self, HttpOptions, HttpVersion};
use godwit_text::typed;
use http::{HeaderName, HeaderValue, Method};

use super::watching::{self, Unit};
use crate::error::Failure;

pub(super) const REQUESTS: &str = "\
How it asks: without --rate each request is begun as soon as another is answered, as many at once as --connections times \
--streams (a closed loop). With --rate they are begun by the clock, whatever has become of those before, and their latency \
counts from when they were due: so a server that stands still for a moment is seen in all requests that were to be made in \
it (an open loop). Requests that are due when all streams are taken wait for one, and are late.

Connections are made before anything is measured. One that the server ends is made anew, and requests that it has not \
acted on are made again. Responses are read to their end. CPU time is this process's own, while measuring, and that of \
--cpu-of.";

/// The fewest and the most requests a second that can be asked for.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=10e6;

/// Make requests to an HTTP server
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// What to ask for
    #[arg(value_name = "URL", value_parser = Target::parse)]
    url: Target,
    #[command(flatten)]
    version: Version,
    /// Time to measure
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = typed::duration)]
    duration: Duration,
    /// Connections at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Requests at the same time on each connection; 1 with --h1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: u32,
    /// Requests to begin in a second, by the clock; by default each is begun as soon as another is answered
    #[arg(long, value_name = "PER SECOND", value_parser = rate)]
    rate: Option<f64>,
    /// Method
    #[arg(short = 'X', long = "request", value_name = "METHOD", default_value = "GET")]
    method: Method,
    /// Send a header; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes to send as the content of each request
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = typed::bytes)]
    content: u64,
    /// Tell the processor time of these processes of this machine as well, such as a server's
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    cpu_of: Vec<u32>,
    #[command(flatten)]
    client: super::Client,
}

/// The version of HTTP.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
struct Version {
    /// Ask over HTTP/1.1
    #[arg(long)]
    h1: bool,
    /// Ask over HTTP/2
    #[arg(long)]
    h2: bool,
    /// Ask over HTTP/3, which is the default
    #[arg(long)]
    h3: bool,
}

impl Version {
    fn http(self) -> HttpVersion {
        match (self.h1, self.h2) {
            (true, _) => HttpVersion::Http1,
            (_, true) => HttpVersion::Http2,
            _ => HttpVersion::Http3,
        }
    }
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if RATES.contains(&rate) => Ok(rate),
        _ => {
            let (least, most) = (RATES.start(), RATES.end());
            Err(format!("expected a number from {least} to {most}, such as 1000 or 0.5"))
        }
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected 'NAME: VALUE'")?;
    let name = name.trim().parse().map_err(|error| format!("not a header's name ({error})"))?;
    let value = value.trim().parse().map_err(|error| format!("not a header's value ({error})"))?;
    Ok((name, value))
}

/// The most bytes of content that a request can have here: they are kept in memory.
const MOST_CONTENT: u64 = 1 << 30;

impl Arguments {
    fn options(self) -> Result<HttpOptions, Failure> {
        let version = self.version.http();
        if version == HttpVersion::Http1 && self.streams != 1 {
            let problem = "--streams: HTTP/1.1 takes one request at a time; give --connections instead";
            return Err(Failure::usage(problem));
        }
        if version != HttpVersion::Http3 && self.client.tuning.cipher.is_some() {
            return Err(Failure::usage("--cipher: it is chosen for QUIC only; ask over HTTP/3"));
        }
        if self.content > MOST_CONTENT {
            return Err(Failure::usage(format!("--content {}: at most 1 GiB", self.content)));
        }
        let mut options = HttpOptions::new(self.url, version);
        options.method = self.method;
        for (name, value) in self.headers {
            options.headers.append(name, value);
        }
        options.content = self.content as usize;
        options.duration = self.duration;
        options.connections = self.connections;
        options.streams = self.streams;
        options.rate = self.rate;
        options.authority = self.client.cacert;
        options.processes = self.cpu_of;
        options.tuning = self.client.tuning.options()?;
        Ok(options)
    }
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let telling = arguments.client.telling()?;
    let watch = watching::watch(telling.lines, Unit::Times);
    telling.tell(&perf::measure_http(&arguments.options()?, watch)?)
}
