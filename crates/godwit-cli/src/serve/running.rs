//! A server from its first to its last moment: everything composed, configured anew on SIGHUP, ended in good order.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::access::{Log, Observer};
use super::advertise::{Advertiser, UserKey, probe};
use super::arguments::Arguments;
use super::banner::Banner;
use super::browser::{Browser, Window};
use super::config::{self, Advertise, Handler, HostPattern, Scrutiny, Settings};
use super::front::Front;
use super::inherited::Inherited;
use super::listen::{self, Listener};
use super::metrics::{CertificateExpiry, Metrics, Transport, server};
use super::redirect_http::Redirect;
use super::signals::{Signals, Wish};
use super::tcp::{self, Purpose};
use super::{convert, h3, print, supervisor};
use crate::certificates::{Identity, Keeper, Store, local, on_stderr, tcp_config};
use crate::error::{Failure, plain};
use crate::output::{Style, date, unix_now};

/// How long requests in progress may take after the first signal, where the settings do not say: under the eyes of
/// a person, and as a service.
const GRACE: Duration = Duration::from_secs(5);
const GRACE_OF_SERVICE: Duration = Duration::from_secs(30);
/// How long the start waits to know whether HTTP/3 answers.
const FIRST_PROBE: Duration = Duration::from_secs(2);

/// Serves until a signal ends it. `files`: descriptors that the process may have.
///
/// # Errors
/// What keeps it from starting.
pub(super) async fn serve(
    arguments: &Arguments,
    settings: Settings,
    browser: Option<Browser>,
    files: u64,
) -> Result<(), Failure> {
    if let Some(folder) = settings.qlog.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::file("cannot trace into", folder, "there is no such folder", "make it first"));
    }
    let drain = settings.drain.unwrap_or(match std::io::stderr().is_terminal() {
        true => GRACE,
        false => GRACE_OF_SERVICE,
    });
    let log = Log::new(&settings.access_log)?;
    let keeper = Keeper::open(&convert::certificates(&settings), on_stderr())?;
    let options = h3::Options::new(keeper.store(), arguments.datapath, &settings, drain)?;
    let mut tls = tcp_config(keeper.store())?;
    if !settings.compress_certificates {
        tls.cert_compressors.clear();
    }
    let mut inherited = Inherited::take();
    let listeners = listen::bind(&settings.listen, &mut inherited, &options)?;
    let redirects = listen::bind_plain(&settings.redirect_http, &mut inherited)?;
    for socket in inherited.left() {
        say(&format!(
            "warning: the service manager opened {socket}, which `listen` does not name; add it there"
        ));
    }
    let figures = settings.metrics.map(bind_metrics).transpose()?;
    let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.address).collect();
    let observer = observe(&settings, log, &addresses);
    let front = Front::new(&settings, observer.clone())?;
    let mut signals = Signals::install()?;
    let identity =
        keeper.store().default_identity().ok_or_else(|| Failure::new("there is no certificate"))?;
    keeper.store().report().iter().for_each(|report| warn_of_dates(report.not_before, report.not_after));

    let what = what_is_served(arguments, &settings);
    let banner = Banner::new(&what, &identity, &listeners, Style::of_stdout());
    let tcp = tcp::Server::new(tls, &settings.limits, files);
    let mut http3 = Vec::new();
    for Listener { udp, tcp: listener, .. } in listeners {
        tcp.serve(listener, Purpose::Sites(front.clone())).await;
        http3.push(udp.serve(front.clone()));
    }
    for listener in redirects {
        let redirect = Redirect::new(keeper.store().clone(), &addresses, observer.clone());
        tcp.serve(listener, Purpose::Redirect(redirect)).await;
    }
    keeper.start();
    report(&observer, &front, keeper.store());
    let (quic_doors, tcp_doors) = (options.doors().clone(), tcp.doors().clone());
    observer.metrics().ask_crowded_out(move || {
        vec![tcp_doors.refused(Transport::Tcp), quic_doors.refused(Transport::Quic)]
    });
    if let Some(figures) = figures {
        say(&format!("metrics are at http://{}/metrics", figures.address()));
        tokio::spawn(figures.serve(Arc::clone(observer.metrics())));
    }
    advertise(&settings, &observer, addresses).await;
    observer.metrics().set_ready(true);
    supervisor::watch();
    supervisor::ready(&what);
    let window = welcome(&banner, &identity, browser)?;

    let mut server = Server { file: arguments.config.as_deref(), settings, keeper, front };
    server.until_end(&mut signals).await;
    observer.metrics().set_ready(false);
    supervisor::stopping();
    if Style::of_stderr().is_coloured() {
        let _ = writeln!(std::io::stderr(), "\nfinishing what is in progress; Ctrl-C again stops at once");
    }
    let drained = async {
        tokio::join!(tcp.drain(), h3::drain(http3));
    };
    tokio::select! {
        () = drained => {}
        () = tokio::time::sleep(drain) => {}
        () = signals.end() => {}
    }
    observer.log().flush();
    drop(window);
    Ok(())
}

/// Who sees every request. Users keep their places in a staged roll-out by a key in the data folder.
fn observe(settings: &Settings, log: Log, addresses: &[SocketAddr]) -> Observer {
    let (key, problem) = UserKey::load(local::folder().as_deref());
    let staged = settings.sites.iter().any(|site| matches!(site.advertise, Advertise::Percent(_)));
    if let Some(problem) = problem.filter(|_| staged) {
        let problem = plain(&problem);
        say(&format!("warning: users will change sides at the next start ({problem}); set XDG_DATA_HOME"));
    }
    let advertiser = Advertiser::new(addresses.iter().map(SocketAddr::port), key);
    Observer::new(log, Metrics::new(), Arc::new(advertiser))
}

fn bind_metrics(address: SocketAddr) -> Result<server::Server, Failure> {
    server::Server::bind(address).map_err(|error| {
        let problem = plain(&error);
        Failure::new(format!("cannot serve metrics at {address}: {problem}; choose another address or port"))
    })
}

/// Names to the metrics who knows what.
fn report(observer: &Observer, front: &Front, store: &Store) {
    let (front, store) = (front.clone(), store.clone());
    observer.metrics().ask_upstreams(move || front.upstreams());
    observer.metrics().ask_certificates(move || {
        let expiry = |report: crate::certificates::Report| CertificateExpiry {
            name: report.names.first().cloned().unwrap_or_default(),
            not_after: report.not_after,
        };
        store.report().into_iter().map(expiry).collect()
    });
}

/// Has HTTP/3 advertised once it answers at this server's own ports, and as long as it does.
async fn advertise(settings: &Settings, observer: &Observer, addresses: Vec<SocketAddr>) {
    let hosts = settings.sites.iter().flat_map(|site| &site.hosts);
    let exact = hosts.into_iter().find_map(|host| match host {
        HostPattern::Exact(name) => Some(name.clone()),
        _ => None,
    });
    let (name, advertiser) = (exact.unwrap_or_else(|| "localhost".to_owned()), observer.advertiser().clone());
    // It takes milliseconds unless something is wrong, which must not keep anybody waiting.
    let first = tokio::spawn({
        let (advertiser, addresses, name) = (advertiser.clone(), addresses.clone(), name.clone());
        async move { probe::once(&advertiser, &addresses, &name).await }
    });
    let _ = tokio::time::timeout(FIRST_PROBE, first).await;
    tokio::spawn(probe::regularly(advertiser, addresses, name));
}

/// Prints the banner, and opens the browser if one is wanted.
fn welcome(
    banner: &Banner<'_>,
    identity: &Identity,
    browser: Option<Browser>,
) -> Result<Option<Window>, Failure> {
    let _ = std::io::stdout().lock().write_all(banner.text().as_bytes());
    match (browser, banner.target()) {
        (Some(browser), Some(target)) => browser.open(target, &identity.facts.pin).map(Some),
        _ => Ok(None),
    }
}

fn what_is_served(arguments: &Arguments, settings: &Settings) -> String {
    if let Some(file) = &arguments.config {
        let file = file.display();
        return match settings.sites.len() {
            1 => format!("the site of {file}"),
            sites => format!("the {sites} sites of {file}"),
        };
    }
    match settings.sites.first().and_then(|site| site.routes.first()).map(|route| &route.handler) {
        Some(Handler::Files(files)) => files.folder.display().to_string(),
        Some(Handler::Proxy(proxy)) => proxy.upstreams.join(", "),
        _ => "its example site".to_owned(),
    }
}

/// An expired certificate is served all the same: clients say best what they think of it.
fn warn_of_dates(not_before: i64, not_after: i64) {
    let now = unix_now();
    let problem = if now >= not_after {
        format!("expired on {}", date(not_after))
    } else if now < not_before {
        format!("is not valid before {}", date(not_before))
    } else {
        return;
    };
    say(&format!("warning: the certificate {problem}; clients will refuse it, so renew it"));
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "godwit: {line}");
}

/// What can be changed while the server runs.
struct Server<'a> {
    /// The configuration, if it is in a file.
    file: Option<&'a Path>,
    /// As last read.
    settings: Settings,
    keeper: Keeper,
    front: Front,
}

impl Server<'_> {
    /// Does what signals ask for, until they ask for the end.
    async fn until_end(&mut self, signals: &mut Signals) {
        loop {
            match (signals.next().await, self.file) {
                (Wish::End, _) => return,
                (Wish::Reload, Some(file)) => {
                    supervisor::reloading();
                    self.reload(file).await;
                    supervisor::ready(&file.display().to_string());
                }
                // Without a configuration it is the terminal that is gone.
                (Wish::Reload, None) => return,
                (Wish::Reopen, _) => self.front.observer().log().reopen(),
            }
        }
    }

    /// Reads the configuration again. If there is anything wrong with it, the one before goes on.
    async fn reload(&mut self, file: &Path) {
        let path = file.to_owned();
        let read = tokio::task::spawn_blocking(move || config::read(&path, Scrutiny::Start));
        let Ok((settings, findings)) = read.await else { return };
        print(&findings);
        let outcome = match &settings {
            Some(settings) => self.apply(settings),
            None => Err(Failure::new(format!("{} has mistakes", file.display()))),
        };
        match (outcome, settings) {
            (Ok(()), Some(settings)) => {
                say(&format!("{} is in force", file.display()));
                self.settings = settings;
            }
            (Err(failure), _) => say(&format!("the configuration before stays in force: {failure}")),
            (Ok(()), None) => {}
        }
    }

    fn apply(&self, settings: &Settings) -> Result<(), Failure> {
        let fixed = self.needs_restart(settings);
        if !fixed.is_empty() {
            say(&format!("warning: changes of {} need a restart", fixed.join(", ")));
        }
        self.keeper.apply(&convert::certificates(settings))?;
        self.front.replace(settings).inspect_err(|_| {
            // The certificates of before fit the sites of before.
            let _ = self.keeper.apply(&convert::certificates(&self.settings));
        })
    }

    /// What has changed that cannot be changed while the server runs.
    fn needs_restart(&self, settings: &Settings) -> Vec<&'static str> {
        let (old, new) = (&self.settings, settings);
        // What a single request may have is up to the sites; the rest belongs to the listeners.
        let limits = config::Limits { body_size: old.limits.body_size, ..new.limits.clone() };
        let changes = [
            ("listen", old.listen != new.listen),
            ("redirect_http", old.redirect_http != new.redirect_http),
            ("metrics", old.metrics != new.metrics),
            ("shards", old.shards != new.shards),
            ("drain", old.drain != new.drain),
            ("qlog", old.qlog != new.qlog),
            ("compress_certificates", old.compress_certificates != new.compress_certificates),
            ("[access_log]", old.access_log != new.access_log),
            ("[limits]", old.limits != limits),
        ];
        changes.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
    }
}
