//! `godwit serve`: files over HTTP/3, HTTP/2 and HTTP/1.1 on one port.
//!
//! Everything that can fail is done before the first line is printed: the folder is opened, the certificate
//! checked or made, the UDP and the TCP port bound. Then the banner says how to reach the server, and requests are
//! answered until SIGINT or SIGTERM. What is then in progress has [`GRACE`] to finish; a second signal ends it at once.
//!
//! - [`front`] answers requests, whatever protocol brought them; [`log`] writes a line for each.
//! - [`listen`] binds the ports, [`tcp`] speaks HTTP/1.1 and HTTP/2, [`h3`] HTTP/3.
//! - [`banner`] and [`browser`] are for the person who started it.

mod access;
mod advertise;
mod arguments;
mod banner;
mod browser;
mod client;
mod config;
mod front;
mod h3;
mod linger;
mod listen;
mod log;
mod metrics;
mod signals;
mod site;
mod tcp;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use crate::certificates::{self, Identity};
use crate::error::{Failure, plain};
use crate::output::{Style, date, unix_now};
pub(crate) use arguments::{Arguments, Datapath};
use banner::Banner;
use browser::Browser;
use config::{LogTarget, Settings};
use listen::Listener;
use log::RequestLog;
use signals::Signals;
use front::Front;

/// How long requests in progress may take after the first signal.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    arguments.check_conflicts()?;
    let settings = Settings::of_arguments(&arguments);
    let browser = arguments.open.then(Browser::find).transpose()?;
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(certificate), Some(key)) => certificates::from_files(certificate, key)?,
        _ => certificates::local::identity()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))?;
    let outcome = runtime.block_on(serve(&arguments, &settings, &identity, browser));
    // A read that hangs on a network file system must not keep the program.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn serve(
    arguments: &Arguments,
    settings: &Settings,
    identity: &Identity,
    browser: Option<Browser>,
) -> Result<(), Failure> {
    if let Some(folder) = settings.qlog.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::file("cannot trace into", folder, "there is no such folder", "make it first"));
    }
    let log = match settings.access_log.target {
        LogTarget::None => RequestLog::off(),
        _ => RequestLog::stdout(),
    };
    let front = Front::new(settings, log)?;
    let options = h3::Options::new(identity, arguments.datapath, settings)?;
    let tls = tcp::tls(identity)?;
    let listeners = listen::bind(&settings.listen, &options)?;
    let mut signals = Signals::install()?;
    warn_of_dates(identity);

    let banner = Banner::new(&arguments.directory, identity, &listeners, Style::of_stdout());
    let target = banner.target().cloned();
    let _ = std::io::stdout().lock().write_all(banner.text().as_bytes());

    let tcp = tcp::Server::new(tls);
    let mut http3 = Vec::new();
    for Listener { address, udp, tcp: listener } in listeners {
        let front = front.at_port(Some(address.port()));
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
