//! A server from its first to its last moment: everything composed, configured anew on SIGHUP, ended in good order.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use super::access::{Log, Observer};
use super::advertise::{Advertiser, UserKey, probe};
use super::arguments::Arguments;
use super::banner::Banner;
use super::browser::{Browser, Window};
use super::config::{self, Advertise, Handler, HostPattern, Scrutiny, Settings};
use super::front::Front;
use super::inherited::{Inherited, Role};
use super::listen::{self, Listener};
use super::metrics::{CertificateExpiry, Metrics, Transport, server};
use super::redirect_http::Redirect;
use super::signals::{Signals, Wish};
use super::successor::Estate;
use super::tcp::{self, Purpose};
use super::{convert, h3, print, say, supervisor};
use crate::certificates::{Identity, Keeper, Store, local, on_stderr, tcp_config};
use crate::error::{Failure, plain};
use crate::output::{date, unix_now};

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
    mut inherited: Inherited,
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
    keeper.store().resume_sessions(inherited.sessions());
    let options = h3::Options::new(keeper.store(), arguments.datapath, &settings, drain)?;
    let tls = tls_over_tcp(keeper.store(), &settings)?;
    let mut estate = Estate::new(keeper.store())?;
    let listeners = listen::bind(&settings.listen, &mut inherited, &options)?;
    let redirects = listen::bind_plain(&settings.redirect_http, &mut inherited)?;
    let figures =
        settings.metrics.map(|address| bind_metrics(address, &mut inherited, &mut estate)).transpose()?;
    let takes_over = inherited.leave_rest();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.address).collect();
    let observer = observe(&settings, log, &addresses);
    let front = Front::new(&settings, observer.clone())?;
    let mut signals = Signals::install()?;
    let identity =
        keeper.store().default_identity().ok_or_else(|| Failure::new("there is no certificate"))?;
    keeper.store().report().iter().for_each(|report| warn_of_dates(report.not_before, report.not_after));

    let what = what_is_served(arguments, &settings);
    let banner = Banner::new(&what, &identity, &listeners, crate::output::stdout_style());
    let tcp = tcp::Server::new(tls, &settings.limits, files);
    // Nothing below keeps it from serving: an older process may end now.
    h3::take_over(listeners.iter().map(|listener| &listener.udp)).await.map_err(|error| {
        Failure::new(format!("cannot take over from the process before: {}", plain(&error)))
    })?;
    let mut http3 = Vec::new();
    for Listener { udp, tcp: listener, .. } in listeners {
        estate.add(Role::Sites, &listener);
        tcp.serve(listener, Purpose::Sites(front.clone())).await;
        http3.push(udp.serve(front.clone()));
    }
    for listener in redirects {
        let redirect = Redirect::new(keeper.store().clone(), &addresses, observer.clone());
        estate.add(Role::Plain, &listener);
        tcp.serve(listener, Purpose::Redirect(redirect)).await;
    }
    keeper.start();
    report(&observer, &front, keeper.store());
    let (quic_doors, tcp_doors) = (options.doors().clone(), tcp.doors().clone());
    observer.metrics().ask_crowded_out(move || {
        vec![tcp_doors.refused(Transport::Tcp), quic_doors.refused(Transport::Quic)]
    });
    let mut chores = Chores::default();
    if let Some(figures) = figures {
        say(&format!("metrics are at http://{}/metrics", figures.address()));
        chores.add(tokio::spawn(figures.serve(Arc::clone(observer.metrics()))).abort_handle());
    }
    chores.add(advertise(&settings, &observer, addresses).await);
    observer.metrics().set_ready(true);
    chores.0.extend(supervisor::watch());
    supervisor::ready(&what);
    // Where an older process was, everybody knows how to reach the server.
    let window = if takes_over { None } else { welcome(&banner, &identity, browser)? };

    let mut server =
        Server { file: arguments.config.as_deref(), what, settings, keeper, front, estate, http3 };
    let handed_over = server.until_end(&mut signals).await;
    observer.metrics().set_ready(false);
    if handed_over {
        // These are the other process's now.
        drop(chores);
    } else {
        supervisor::stopping();
        if crate::output::stderr_style().is_coloured() {
            let _ =
                writeln!(std::io::stderr(), "\nfinishing what is in progress; Ctrl-C again stops at once");
        }
    }
    let Server { keeper, http3, .. } = server;
    // Certificates are looked after until the last handshake, which is here or in the other process.
    let _keeper = (!handed_over).then_some(keeper);
    finish(&tcp, http3, drain, handed_over, &mut signals).await;
    observer.log().flush();
    drop(window);
    Ok(())
}

fn tls_over_tcp(store: &Store, settings: &Settings) -> Result<rustls::ServerConfig, Failure> {
    let mut tls = tcp_config(store)?;
    if !settings.compress_certificates {
        tls.cert_compressors.clear();
    }
    Ok(tls)
}

/// Lets what is in progress finish. After a hand-over the first signal says only what is under way already: a service
/// manager that ends the server tells all of its processes.
async fn finish(
    tcp: &tcp::Server,
    http3: Vec<h3::Running>,
    limit: Duration,
    handed_over: bool,
    signals: &mut Signals,
) {
    let drained = async {
        tokio::join!(tcp.drain(handed_over), h3::drain(http3, handed_over));
    };
    let told = async {
        if handed_over {
            signals.end().await;
        }
        signals.end().await;
    };
    tokio::select! {
        () = drained => {}
        () = tokio::time::sleep(limit) => {}
        () = told => {}
    }
}

/// What only the serving process does. Dropped, it ends.
#[derive(Default)]
struct Chores(Vec<AbortHandle>);

impl Chores {
    fn add(&mut self, chore: AbortHandle) {
        self.0.push(chore);
    }
}

impl Drop for Chores {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
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

fn bind_metrics(
    address: SocketAddr,
    inherited: &mut Inherited,
    estate: &mut Estate,
) -> Result<server::Server, Failure> {
    let bound = listen::bind_tcp(address, Role::Metrics, inherited).and_then(|tcp| {
        estate.add(Role::Metrics, &tcp);
        server::Server::on(tcp.listener)
    });
    bound.map_err(|error| {
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
async fn advertise(settings: &Settings, observer: &Observer, addresses: Vec<SocketAddr>) -> AbortHandle {
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
    tokio::spawn(probe::regularly(advertiser, addresses, name)).abort_handle()
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

/// What follows an attempt to hand over.
#[derive(Clone, Copy)]
enum After {
    Serve,
    /// Somebody asked for that meanwhile.
    Reload,
    End,
    HandedOver,
}

/// What can be changed while the server runs.
struct Server<'a> {
    /// The configuration, if it is in a file.
    file: Option<&'a Path>,
    /// What is served, in words.
    what: String,
    /// As last read.
    settings: Settings,
    keeper: Keeper,
    front: Front,
    estate: Estate,
    http3: Vec<h3::Running>,
}

impl Server<'_> {
    /// Does what signals ask for, until they ask for the end, or another process has taken over: true.
    async fn until_end(&mut self, signals: &mut Signals) -> bool {
        loop {
            match (signals.next().await, self.file) {
                (Wish::End, _) => return false,
                (Wish::Reload, Some(file)) => {
                    supervisor::reloading();
                    self.reload(file).await;
                    supervisor::ready(&file.display().to_string());
                }
                // Without a configuration it is the terminal that is gone.
                (Wish::Reload, None) => return false,
                (Wish::Reopen, _) => self.front.observer().log().reopen(),
                (Wish::HandOver, file) => match self.hand_over(signals).await {
                    After::End => return false,
                    After::HandedOver => return true,
                    After::Serve => {}
                    After::Reload => {
                        if let Some(file) = file {
                            self.reload(file).await;
                        }
                    }
                },
            }
        }
    }

    /// Has a new process take over, and goes on serving if that fails.
    async fn hand_over(&self, signals: &mut Signals) -> After {
        supervisor::reloading();
        let mut attempt = pin!(self.estate.hand_over(&self.http3));
        let mut after = After::Serve;
        loop {
            let wish = tokio::select! {
                outcome = &mut attempt => match outcome {
                    Ok(process) => {
                        say(&format!("process {process} has taken over; finishing what is in progress"));
                        supervisor::handed_over(process, &self.what);
                        return After::HandedOver;
                    }
                    Err(problem) => {
                        say(&format!("no new process has taken over, this one goes on: {problem}"));
                        supervisor::ready(&self.what);
                        return after;
                    }
                },
                wish = signals.next() => wish,
            };
            match wish {
                // Dropped, the attempt ends what it has started.
                Wish::End => return After::End,
                Wish::Reload if self.file.is_none() => return After::End,
                // The new process reads it anyway.
                Wish::Reload => after = After::Reload,
                Wish::Reopen => self.front.observer().log().reopen(),
                Wish::HandOver => say("a new process is being started already; this wish is refused"),
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
