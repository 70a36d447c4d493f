//! `godwit perf`: throughput, requests and latency between two machines, and of any HTTP server. What measures is
//! `godwit-lab`'s.

mod http;
mod sweep;
mod watching;
mod workload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use godwit::{CongestionAlgorithm, DepartureTimes, Spin};
use godwit_certificates::from_files;
use godwit_front::settings::{Datapath, every_core};
use godwit_lab::perf::{self, ClientOptions, ServerOptions};
use godwit_text::typed;

use crate::error::{Failure, plain};
use crate::output::{self, print, stdout_style};
use watching::Unit;
use workload::Workload;

/// Measure throughput, requests and latency between two machines
#[derive(Debug, Args)]
#[command(long_about = ABOUT)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const ABOUT: &str = "\
Measure throughput, requests and latency between two machines

Start `godwit perf server` on one and `godwit perf client` on the other. Both speak the \"perf\" protocol \
(ALPN \"perf\") of other QUIC implementations and can be measured against those. `godwit perf http` makes requests to \
any HTTP server.";

/// What says nothing to TCP.
const QUIC_ONLY: [&str; 6] = ["mtu", "cc", "datapath", "departure_times", "spin", "sealing_threads"];

const SENDING: &str = "\
How it sends: both ends write pieces of 64 KiB of static memory, whose bytes follow from their position in an answer (--verify), as many as the connection's send buffer takes \
(8 MiB), and read through the same interface as every application. Windows: 16 MiB for a stream, 32 MiB for a \
connection. UDP socket buffers of 4 MiB are asked for. Idle timeout: 30 s. Handshakes are full, unless the server is \
started with --tickets and the client with --resumed.";

const SCENARIOS: &str = "\
What is measured:
  --download, --upload  bytes of stream data that reached the other application, in 10^6 bits per second; an
                        upload counts as over when the server has confirmed all of it
  --rps                 requests whose answer was read to its end; latency from opening the stream to that end
  --latency             the same with one request at a time, to tell how long each takes
  --hps                 handshakes that were completed by the client; latency from the first packet to that
  --idle                memory that connections take on which nothing happens, and how many die
CPU time is this process's own, while measuring. Ctrl-C ends a measurement early with what has been measured so far.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer clients until it is stopped with Ctrl-C
    #[command(after_long_help = SENDING)]
    Server(ServerArguments),
    /// Measure against a server
    #[command(after_long_help = format!("{SCENARIOS}\n\n{SENDING}"))]
    Client(ClientArguments),
    /// Make requests with more and more of them at the same time, and find out how many are best
    Sweep(sweep::Arguments),
    /// Make requests to an HTTP server
    #[command(after_long_help = http::REQUESTS)]
    Http(http::Arguments),
}

/// Answer clients until it is stopped with Ctrl-C
#[derive(Debug, Args)]
struct ServerArguments {
    /// Address to listen on, and the port of UDP and TCP; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:4433")]
    listen: SocketAddr,
    /// Certificate chain in PEM; by default one is made up for this run
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Threads, each with a socket and connections of its own [default: one for each core of --pin, or that it may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    shards: Option<u8>,
    /// Give out session tickets, for clients with --resumed
    #[arg(long)]
    tickets: bool,
    /// Cores to pin the threads to, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pin: Vec<usize>,
    #[command(flatten)]
    tuning: Tuning,
}

/// Measure against a server
#[derive(Debug, Args)]
struct ClientArguments {
    /// The server: a name or address, and a port
    #[arg(value_name = "HOST:PORT")]
    target: String,
    #[command(flatten)]
    scenario: Scenario,
    /// Time to measure, where it is not given with the scenario
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = typed::duration)]
    duration: Duration,
    /// Connections at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: Option<u32>,
    /// Streams, or requests, at the same time on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: Option<u32>,
    /// Bytes of a request, without its header of 8 bytes (--rps, --latency) [default: 512]
    #[arg(long, value_name = "BYTES", value_parser = typed::bytes)]
    request: Option<u64>,
    /// Bytes of a response (--rps, --latency) [default: 8192]
    #[arg(long, value_name = "BYTES", value_parser = typed::bytes)]
    response: Option<u64>,
    /// Bytes of the longest response: lengths differ, from --response to this (--rps, --latency)
    #[arg(long, value_name = "BYTES", value_parser = typed::bytes)]
    longest_response: Option<u64>,
    /// Requests at the same time over all connections, in place of --streams on each: each is made on the connection whose
    /// turn it is (--rps)
    #[arg(long, value_name = "N", conflicts_with = "streams", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    in_flight: Option<u32>,
    /// Requests to begin in a second, by the clock; by default each is begun as soon as another is answered (--rps)
    #[arg(long, value_name = "PER SECOND", value_parser = http::rate)]
    rate: Option<f64>,
    /// Tell how much memory this process of this machine takes for the connections, such as a server's (--idle, --workload many)
    #[arg(long, value_name = "PID")]
    memory_of: Option<u32>,
    /// Handshakes at the same time (--hps)
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,
    /// Tell where this end's processor time goes: cryptography, UDP calls, QUIC and the application. The clock around them
    /// takes some of it
    #[arg(long)]
    breakdown: bool,
    /// Measure over TCP and TLS 1.3 in place of QUIC: each stream is then a connection of its own
    #[arg(long, conflicts_with_all = ["resumed", "breakdown"], conflicts_with_all = QUIC_ONLY)]
    tcp: bool,
    /// Check every byte that arrives, against `godwit perf server`, and fail at the first that is wrong (--download)
    #[arg(long)]
    verify: bool,
    /// Resume sessions in place of full handshakes, against a server with --tickets (--hps)
    #[arg(long)]
    resumed: bool,
    #[command(flatten)]
    client: Client,
}

/// What both clients can be told: of this end, of whom they believe, and of how to tell.
#[derive(Debug, Args)]
struct Client {
    /// Core to pin to
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// Print no line per second while measuring, as is done on a terminal
    #[arg(short, long)]
    quiet: bool,
    /// Write all times of requests or handshakes to this file: a line for each range with the longest time in it in
    /// microseconds, how many there are, and the share of all that are no longer
    #[arg(long, value_name = "FILE")]
    histogram: Option<PathBuf>,
    /// Accept any certificate; this is the default here, unless --cacert is given
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Accept only certificates that go back to one in this PEM file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    tuning: Tuning,
}

/// What to measure. A time may be given with each; otherwise it is that of --duration.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Scenario {
    /// Receive for this long
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = typed::duration)]
    download: Option<Option<Duration>>,
    /// Send for this long
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = typed::duration)]
    upload: Option<Option<Duration>>,
    /// Make requests, each on a stream of its own
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = typed::duration)]
    rps: Option<Option<Duration>>,
    /// Make requests one at a time and tell how long they take
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = typed::duration)]
    latency: Option<Option<Duration>>,
    /// Make connections
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = typed::duration)]
    hps: Option<Option<Duration>>,
    /// Open this many connections, leave them alone for --duration, and tell how much memory they take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    idle: Option<u32>,
    /// Make requests as in a load with a name, for --duration: 512x8k, 4k, owa (1000 connections of users who think for a
    /// second, 8 KiB up and 2 to 32 KiB down) or many (50 000 connections with 20 000 requests at the same time); what else is
    /// given is changed in it
    #[arg(long, value_name = "NAME")]
    workload: Option<Workload>,
}

/// What both ends can be told about the transport.
#[derive(Debug, Clone, Copy, Args)]
struct Tuning {
    /// Largest UDP payload to try; 1200 is no search for a larger one
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = clap::value_parser!(u16).range(1200..=65_507))]
    mtu: u16,
    /// Congestion control: newreno, cubic, bbr or prague
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: CongestionAlgorithm,
    /// The only cipher suite to accept: aes128, aes256 or chacha20; by default any, of which aes128 is preferred
    #[arg(long, value_name = "NAME")]
    cipher: Option<perf::Cipher>,
    /// Key exchange: hybrid (X25519MLKEM768 before all others) or x25519 alone, with which most others are measured
    #[arg(long, value_name = "NAME", default_value = "hybrid")]
    key_exchange: perf::KeyExchange,
    /// How to reach the network: auto, linux or portable
    #[arg(long, value_name = "NAME", default_value = "auto")]
    datapath: Datapath,
    /// Have the kernel hold packets back until they are to leave: off, auto (where all interfaces have fq) or on
    #[arg(long, value_name = "WHEN", default_value = "off")]
    departure_times: DepartureTimes,
    /// Look for datagrams before going to sleep, which saves being woken and costs a core: off, auto (while it is likely that
    /// they come soon), or always, for 1 ms after the last datagram or as said, such as always:200us
    #[arg(long, value_name = "WHEN", default_value = "off")]
    spin: Spin,
    /// Threads that protect packets beside those that send them, 0 to 64: a connection that sends much then has more than
    /// one core. It takes more processor time in all, and is of use only where a core is idle
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    sealing_threads: u8,
}

impl ClientArguments {
    /// What to measure and for how long.
    fn kind(&self) -> (perf::Scenario, Duration) {
        let Scenario { download, upload, rps, latency, hps, idle, workload } = self.scenario;
        let candidates = [
            (perf::Scenario::Download, download),
            (perf::Scenario::Upload, upload),
            (perf::Scenario::Requests, rps),
            (perf::Scenario::Latency, latency),
            (perf::Scenario::Handshakes, hps),
            (perf::Scenario::Idle, idle.map(|_| None)),
            (perf::Scenario::Requests, workload.map(|_| None)),
        ];
        let chosen = candidates.into_iter().find_map(|(kind, given)| Some((kind, given?)));
        // One of them is required, or this is not reached.
        let (kind, given) = chosen.unwrap_or((perf::Scenario::Download, None));
        (kind, given.unwrap_or(self.duration))
    }

    fn options(self) -> Result<ClientOptions, Failure> {
        let (scenario, duration) = self.kind();
        let mut options = ClientOptions::new(self.target.as_str(), scenario);
        options.duration = duration;
        if let Some(workload) = self.scenario.workload {
            workload.preset(&mut options);
        }
        self.change(&mut options)?;
        if let Some(workload) = self.scenario.workload {
            workload.follow(&mut options);
        }
        options.concurrency = self.concurrency;
        (options.resumed, options.tcp, options.verify) = (self.resumed, self.tcp, self.verify);
        options.authority = self.client.cacert;
        options.tuning = self.client.tuning.options()?;
        options.tuning.breakdown = self.breakdown;
        Ok(options)
    }
}

impl ClientArguments {
    /// Changes the options that are given.
    fn change(&self, options: &mut ClientOptions) -> Result<(), Failure> {
        let usage = |problem: &str| Err(Failure::usage(problem));
        let requests = matches!(options.scenario, perf::Scenario::Requests | perf::Scenario::Latency);
        if !requests && (self.rate.is_some() || self.in_flight.is_some() || self.longest_response.is_some()) {
            return usage("--rate, --in-flight and --longest-response are of requests; give --rps");
        }
        if options.scenario == perf::Scenario::Latency && self.in_flight.is_some() {
            return usage("--in-flight: --latency makes one request at a time; give --rps");
        }
        if self.scenario.idle.is_some() && (self.connections.is_some() || self.streams.is_some()) {
            return usage(
                "--idle says how many connections there are; leave out --connections and --streams",
            );
        }
        if self.resumed && options.scenario != perf::Scenario::Handshakes {
            return usage("--resumed: what is resumed is counted in handshakes; give --hps");
        }
        if self.verify && options.scenario != perf::Scenario::Download {
            return usage("--verify: what is downloaded is checked; give --download");
        }
        if self.memory_of.is_some() && !options.memory {
            return usage("--memory-of: give --idle or --workload many");
        }
        if self.tcp && (self.in_flight.is_some() || (options.in_flight.is_some() && self.streams.is_none())) {
            return usage(
                "--in-flight: over --tcp each connection takes one request at a time; give --streams",
            );
        }
        let set = |option: &mut u32, given: Option<u32>| *option = given.unwrap_or(*option);
        set(&mut options.connections, self.scenario.idle.or(self.connections));
        set(&mut options.streams, self.streams);
        options.request = self.request.unwrap_or(options.request);
        if let Some(response) = self.response {
            // One length is given: it is that of all.
            (options.response, options.longest_response) = (response, None);
        }
        options.longest_response = self.longest_response.or(options.longest_response);
        options.in_flight = self.in_flight.or(options.in_flight).filter(|_| self.streams.is_none());
        (options.rate, options.memory_of) = (self.rate, self.memory_of);
        Ok(())
    }
}

impl ServerArguments {
    fn options(self) -> Result<ServerOptions, Failure> {
        let mut options = ServerOptions::default();
        if let (Some(certificate), Some(key)) = (&self.cert, &self.key) {
            let identity = from_files(certificate, key)?;
            options.identity = Some((identity.chain, identity.key));
        }
        options.listen = self.listen;
        let pinned = u8::try_from(self.pin.len()).ok().filter(|pinned| *pinned > 0);
        options.shards = self.shards.or(pinned).unwrap_or_else(|| every_core().get());
        options.tickets = self.tickets;
        options.pin = self.pin;
        options.tuning = self.tuning.options()?;
        Ok(options)
    }
}

impl Tuning {
    fn options(self) -> Result<perf::Tuning, Failure> {
        let mut tuning = perf::Tuning::default();
        (tuning.mtu, tuning.congestion, tuning.spin) = (self.mtu, self.cc, self.spin);
        (tuning.departure_times, tuning.cipher) = (self.departure_times, self.cipher);
        (tuning.key_exchange, tuning.sealing_threads) = (self.key_exchange, self.sealing_threads);
        tuning.datapath = self.datapath.backend().map_err(|error| Failure::new(error.to_string()))?;
        Ok(tuning)
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Server(arguments) => serve(arguments.options()?),
        Command::Client(arguments) => measure(arguments),
        Command::Sweep(arguments) => sweep::run(arguments),
        Command::Http(arguments) => http::run(arguments),
    }
}

fn serve(options: ServerOptions) -> Result<ExitCode, Failure> {
    let listen = options.listen;
    let server = perf::Server::start(options).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix(&format!("cannot listen on {listen}: ")) {
            Some(problem) => Failure::new(format!("--listen {listen}: {problem}")),
            None => Failure::new(text),
        }
    })?;
    print(&format!("listening on {}\n", server.local_addr()?))?;
    output::runtime()?.block_on(async { output::interrupted().await });
    print(&format!("{}\n", server.summary(stdout_style())))?;
    server.close();
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: ClientArguments) -> Result<ExitCode, Failure> {
    let (scenario, _) = arguments.kind();
    if matches!(scenario, perf::Scenario::Download | perf::Scenario::Upload | perf::Scenario::Idle)
        && arguments.client.histogram.is_some()
    {
        let problem = "--histogram: only requests and handshakes are timed; give --rps, --latency or --hps";
        return Err(Failure::usage(problem));
    }
    let telling = arguments.client.telling()?;
    let unit = match scenario {
        perf::Scenario::Download | perf::Scenario::Upload => Unit::Bits,
        perf::Scenario::Idle => Unit::None,
        _ => Unit::Times,
    };
    let watch = watching::watch(telling.lines, unit);
    telling.tell(&perf::measure(&arguments.options()?, watch)?)
}

/// Keeps this thread, which does everything, on a core.
fn pin(core: Option<usize>) -> Result<(), Failure> {
    let Some(core) = core else { return Ok(()) };
    let failed =
        |error| Failure::new(format!("--pin {core}: {}; give a core of this machine", plain(&error)));
    godwit::pin_current_thread(core).map_err(failed)
}

/// How the outcome is told.
struct Telling {
    json: bool,
    /// Lines while it lasts.
    lines: bool,
    histogram: Option<PathBuf>,
}

impl Client {
    /// Readies this end: what cannot be done is said before anything is measured.
    fn telling(&self) -> Result<Telling, Failure> {
        pin(self.pin)?;
        if let Some(file) = &self.histogram {
            output::check_writable(file)?;
        }
        let lines = !self.json && !self.quiet;
        Ok(Telling { json: self.json, lines, histogram: self.histogram.clone() })
    }
}

impl Telling {
    fn tell(&self, report: &perf::Report) -> Result<ExitCode, Failure> {
        if let (Some(file), Some(latency)) = (&self.histogram, &report.latency) {
            output::write(file, latency.histogram())?;
        }
        print(&if self.json { report.json() + "\n" } else { report.table(stdout_style()) })?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[derive(Debug, Parser)]
    struct Perf {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn client(words: &str) -> Result<ClientArguments, clap::Error> {
        let words = ["perf", "client"].into_iter().chain(words.split_whitespace());
        match Perf::try_parse_from(words)?.arguments.command {
            Command::Client(arguments) => Ok(arguments),
            _ => panic!("the client was asked for"),
        }
    }

    #[test]
    fn a_time_may_be_given_with_the_scenario_or_apart() {
        let kind = |words| client(words).unwrap().kind();
        assert_eq!(kind("h:1 --download 2s"), (perf::Scenario::Download, Duration::from_secs(2)));
        assert_eq!(kind("h:1 --upload"), (perf::Scenario::Upload, Duration::from_secs(5)));
        assert_eq!(
            kind("h:1 --rps --request 512 --streams 3"),
            (perf::Scenario::Requests, Duration::from_secs(5))
        );
        assert_eq!(
            kind("h:1 --hps --duration 300ms"),
            (perf::Scenario::Handshakes, Duration::from_millis(300))
        );
    }

    #[test]
    fn one_scenario_is_needed_and_no_more() {
        assert_eq!(client("h:1").unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
        assert_eq!(client("h:1 --hps --rps").unwrap_err().kind(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for words in [
            "h:1 --download 5",
            "h:1 --rps --streams 0",
            "h:1 --rps --request -1",
            "h:1 --download --mtu 1199",
            "h:1 --download --cc vegas",
            "h:1 --hps --key-exchange p256",
            "h:1 --download --spin 50",
            "h:1 --download --sealing-threads 65",
            "h:1 --download --insecure --cacert x",
        ] {
            assert!(client(words).is_err(), "{words}");
        }
    }

    #[test]
    fn a_server_needs_a_certificate_with_its_key() {
        let server = |words: &str| {
            Perf::try_parse_from(["perf", "server"].into_iter().chain(words.split_whitespace())).map(|_| ())
        };
        assert!(server("--listen 127.0.0.1:0 --shards 2 --pin 0,1").is_ok());
        assert!(server("--cert a").is_err());
        assert!(server("--shards 0").is_err());
        assert!(server("--listen localhost").is_err());
    }
}
