//! `godwit serve`: files over HTTP/3, HTTP/2 and HTTP/1.1 on one port.
//!
//! Everything that can fail is done before the first line is printed: the folder is opened, the certificate
//! checked or made, the UDP and the TCP port bound. Then the banner says how to reach the server, and requests are
//! answered until SIGINT or SIGTERM. What is then in progress has [`GRACE`] to finish; a second signal ends it at once.
//!
//! - [`site`] answers requests, whatever protocol brought them; [`log`] writes a line for each.
//! - [`listen`] binds the ports, [`tcp`] speaks HTTP/1.1 and HTTP/2, [`h3`] HTTP/3.
//! - [`banner`] and [`browser`] are for the person who started it.

mod banner;
mod browser;
mod h3;
mod linger;
mod listen;
mod log;
mod signals;
mod site;
mod tcp;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::certificates::{self, Identity};
use crate::error::{Failure, plain};
use crate::output::{Style, date, unix_now};
use banner::Banner;
use browser::Browser;
use listen::Listener;
use log::RequestLog;
use signals::Signals;
use site::{Embedded, Folder, Front, Source};

/// How long requests in progress may take after the first signal.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder to serve [default: the example site inside the program]
    ///
    /// Names that begin with a dot are not served (except .well-known), nor are links that lead out of the folder.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Address and port, both for UDP and TCP; may be repeated. A port alone means every address,
    /// port 0 any free port [default: `[::]:4433`, which is IPv4 as well]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen::parse)]
    listen: Vec<SocketAddr>,

    /// Certificate chain (PEM) [default: made for this machine by an authority of your own]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Open the site in Chromium or Chrome, with a fresh profile that trusts this server
    #[arg(long)]
    open: bool,

    /// Cores that HTTP/3 runs on
    #[arg(long, value_name = "N", default_value = "1", value_parser = cores)]
    shards: NonZeroU8,

    /// How UDP is sent and received
    #[arg(long, value_name = "KIND", default_value = "auto")]
    datapath: Datapath,

    /// Write a trace of every HTTP/3 connection into this folder (qlog, one file each)
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,

    /// No line for each request
    #[arg(long, short)]
    quiet: bool,
}

/// The ways to the network that `--datapath` chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Datapath {
    /// The best this system has
    Auto,
    /// Linux: batches with segmentation offload
    Linux,
    /// Any system
    Portable,
}

fn cores(text: &str) -> Result<NonZeroU8, String> {
    text.parse().map_err(|_| "expected a number from 1 to 255".to_owned())
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let source = match &arguments.directory {
        Some(directory) => Source::Folder(open_folder(directory)?),
        None => Source::Embedded(Embedded::new()),
    };
    let browser = arguments.open.then(Browser::find).transpose()?;
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(certificate), Some(key)) => certificates::from_files(certificate, key)?,
        _ => certificates::local::identity()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))?;
    let outcome = runtime.block_on(serve(&arguments, source, &identity, browser));
    // A read that hangs on a network file system must not keep the program.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn open_folder(path: &Path) -> Result<Folder, Failure> {
    let remedy = "give a folder that exists and can be read, or none for the example site";
    if path.is_file() {
        let problem = "it is a file, not a folder";
        return Err(Failure::file("cannot serve", path, problem, "give the folder that it is in"));
    }
    Folder::open(path).map_err(|error| Failure::file("cannot serve", path, plain(&error), remedy))
}

async fn serve(
    arguments: &Arguments,
    source: Source,
    identity: &Identity,
    browser: Option<Browser>,
) -> Result<(), Failure> {
    if let Some(folder) = arguments.qlog.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::file("cannot trace into", folder, "there is no such folder", "make it first"));
    }
    let options = h3::Options::new(identity, arguments)?;
    let tls = tcp::tls(identity)?;
    let listeners = listen::bind(&arguments.listen, &options)?;
    let mut signals = Signals::install()?;
    warn_of_dates(identity);

    let banner = Banner::new(&arguments.directory, identity, &listeners, Style::of_stdout());
    let target = banner.target().cloned();
    let _ = std::io::stdout().lock().write_all(banner.text().as_bytes());

    let log = if arguments.quiet { RequestLog::off() } else { RequestLog::stdout() };
    let source = Arc::new(source);
    let tcp = tcp::Server::new(tls);
    let mut http3 = Vec::new();
    for Listener { address, udp, tcp: listener } in listeners {
        let front = Front::new(Arc::clone(&source), log, Some(address.port()));
        tcp.serve(listener, front.clone());
        http3.push(udp.serve(front));
    }
    let window = match (browser, target) {
        (Some(browser), Some(target)) => Some(browser.open(&target, &identity.facts.pin)?),
        _ => None,
    };

    signals.next().await;
    if Style::of_stderr().is_coloured() {
        let _ = writeln!(std::io::stderr(), "\nfinishing what is in progress; Ctrl-C again stops at once");
    }
    let drained = async {
        tokio::join!(tcp.drain(), h3::drain(http3));
    };
    tokio::select! {
        () = drained => {}
        () = tokio::time::sleep(GRACE) => {}
        () = signals.next() => {}
    }
    log.flush();
    drop(window);
    Ok(())
}

/// An expired certificate is served all the same: clients say best what they think of it.
fn warn_of_dates(identity: &Identity) {
    let (facts, now) = (&identity.facts, unix_now());
    let problem = if now >= facts.not_after {
        format!("expired on {}", date(facts.not_after))
    } else if now < facts.not_before {
        format!("is not valid before {}", date(facts.not_before))
    } else {
        return;
    };
    let line = format!("godwit: warning: the certificate {problem}; clients will refuse it, so renew it");
    let _ = writeln!(std::io::stderr(), "{line}");
}
