//! A server from start to end: everything composed, configured anew while it runs, ended in good order.
//!
//! [`Server::bind`] does everything that can fail: it reads certificates, binds ports, opens logs and folders.
//! [`Server::start`] then answers, and [`Running`] is for changing what runs and for its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use godwit_certificates::{Certificates, Identity, Notices, Store, local, tcp_config};
use godwit_text::{Style, date, plain_error, unix_now};
use tokio::task::AbortHandle;

use super::FrontError;
use super::access::{Log, Observer};
use super::advertise::{Advertiser, UserKey, probe};
use super::certificates::certificates;
use super::cut::Cut;
use super::h3::{self, Granted};
use super::inherited::{Inherited, Role};
use super::listen::{self, Listener, Tcp};
use super::memory;
use super::metrics::{self, CertificateExpiry, Metrics, Transport};
use super::redirect_http::Redirect;
use super::settings::{Advertise, Datapath, HostPattern, Limits, Settings};
use super::shards::Shards;
use super::sites::Front;
use super::successor::HandOver;
use super::tcp::{self, Purpose};

/// How long the start waits to know whether HTTP/3 answers.
const FIRST_PROBE: Duration = Duration::from_secs(2);
/// How long the end waits for the lines of what has been cut off.
const LAST_LINES: Duration = Duration::from_millis(250);

/// What a server is made of.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) notices: Notices,
    pub(crate) inherited: Inherited,
    pub(crate) datapath: Datapath,
    /// Where the settings do not say.
    pub(crate) grace: Duration,
    pub(crate) style: Style,
}

/// A server whose ports are bound and whose certificates are at hand. It answers from [`Server::start`] on; dropped
/// before, it closes its ports.
pub struct Server {
    settings: Settings,
    notices: Notices,
    certificates: Certificates,
    identity: Arc<Identity>,
    listeners: Vec<Listener>,
    redirects: Vec<Tcp>,
    figures: Option<metrics::server::Server>,
    observer: Observer,
    front: Front,
    tcp: tcp::Server,
    quic: h3::Options,
    shards: Shards,
    hand_over: HandOver,
    takes_over: bool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

impl Server {
    /// Does everything that can fail.
    pub(crate) fn bind(plan: Plan) -> Result<Server, FrontError> {
        let Plan { settings, notices, mut inherited, datapath, grace, style } = plan;
        if let Some(folder) = settings.qlog.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(FrontError::file(
                "cannot trace into",
                folder,
                "there is no such folder",
                "make it first",
            ));
        }
        let files = godwit_os::descriptors::raise_limit().unwrap_or(1024);
        let log = Log::new(&settings.access_log, settings.shards, style, &notices)?;
        let certificates = Certificates::open(&certificates(&settings), notices.clone())?;
        certificates.store().resume_sessions(inherited.sessions());
        let drain = settings.drain.unwrap_or(grace);
        let shards = Shards::start(settings.shards)?;
        let quic = h3::Options::new(certificates.store(), datapath, &settings, drain, (&shards, &notices))?;
        let tls = tls_over_tcp(certificates.store(), &settings)?;
        let mut hand_over = HandOver::new(certificates.store())?;
        let listeners = listen::bind(&settings.listen, &mut inherited, &quic)?;
        let redirects = listen::bind_plain(&settings.redirect_http, &mut inherited)?;
        let figures = settings
            .metrics
            .map(|address| bind_metrics(address, &mut inherited, &mut hand_over))
            .transpose()?;
        let takes_over = inherited.leave_rest(&notices);
        let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.address).collect();
        let observer = observe(&settings, log, &addresses, &notices);
        observer.metrics().set_clocks(shards.clocks());
        let front = Front::new(&settings, observer.clone())?;
        let identity = certificates
            .store()
            .default_identity()
            .ok_or_else(|| FrontError::new("there is no certificate"))?;
        for report in certificates.store().report() {
            warn_of_dates(report.not_before, report.not_after, &notices);
        }
        let tcp = tcp::Server::new(tls, &settings.limits, files, &notices, &shards);
        Ok(Server {
            settings,
            notices,
            certificates,
            identity,
            listeners,
            redirects,
            figures,
            observer,
            front,
            tcp,
            quic,
            shards,
            hand_over,
            takes_over,
        })
    }

    /// Where it listens, for UDP and TCP alike: the ports are never 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|listener| listener.address).collect()
    }

    /// What the system gave the first UDP socket; `None` where it is not known.
    pub fn granted(&self) -> Option<Granted> {
        self.listeners.first().and_then(|listener| listener.udp.granted())
    }

    /// What is shown to clients for which nothing else fits.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Whether it takes the place of an older process, whose clients know how to reach it.
    pub fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// Answers requests from now on: in tasks of this runtime or, where [`Settings::shards`] is more than 1, on so many
    /// threads with a runtime of their own each.
    ///
    /// # Errors
    /// If an older process does not let go of its sockets.
    pub async fn start(self) -> Result<Running, FrontError> {
        let addresses = self.addresses();
        let Server {
            settings,
            notices,
            certificates,
            listeners,
            front,
            observer,
            tcp,
            mut hand_over,
            shards,
            ..
        } = self;
        // Nothing below keeps it from serving: an older process may end now.
        h3::take_over(listeners.iter().map(|listener| &listener.udp)).await.map_err(|error| {
            FrontError::new(format!("cannot take over from the process before: {}", plain_error(&error)))
        })?;
        let mut http3 = Vec::new();
        for Listener { udp, tcp: listener, .. } in listeners {
            hand_over.add(Role::Sites, &listener);
            tcp.serve(listener, Purpose::Sites(front.clone())).await;
            http3.push(udp.serve(front.clone()));
        }
        for listener in self.redirects {
            let redirect = Redirect::new(certificates.store().clone(), &addresses, front.clone());
            hand_over.add(Role::Plain, &listener);
            tcp.serve(listener, Purpose::Redirect(redirect)).await;
        }
        certificates.start();
        report(&observer, &front, certificates.store());
        let (quic_limits, tcp_limits) = (self.quic.limits().clone(), tcp.connection_limits().clone());
        observer.metrics().ask_over_limit(move || {
            vec![tcp_limits.refused(Transport::Tcp), quic_limits.refused(Transport::Quic)]
        });
        let mut background = BackgroundTasks::default();
        if let Some(figures) = self.figures {
            notices.say(&format!("metrics are at http://{}/metrics", figures.address()));
            figures.warning().into_iter().for_each(|warning| notices.say(&warning));
            background.add(tokio::spawn(figures.serve(Arc::clone(observer.metrics()))).abort_handle());
        }
        background.add(advertise(&settings, &observer, addresses.clone()).await);
        background.add(tokio::spawn(memory::give_back_what_is_free(shards.clone())).abort_handle());
        observer.metrics().set_ready(true);
        let certificates = Some(certificates);
        let handed_over = AtomicBool::new(false);
        Ok(Running {
            addresses,
            settings,
            notices,
            certificates,
            front,
            hand_over,
            tcp: Some(tcp),
            http3,
            background,
            handed_over,
            shards,
        })
    }

    /// Answers requests for as long as the future lives.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn serve(self) -> Result<(), FrontError> {
        let _running = self.start().await?;
        std::future::pending().await
    }
}

/// A server that answers. Dropped, it ends at once; [`Running::shutdown`] lets what is under way finish.
pub struct Running {
    addresses: Vec<SocketAddr>,
    /// As last applied.
    settings: Settings,
    notices: Notices,
    /// `None` once they are another process's.
    certificates: Option<Certificates>,
    front: Front,
    hand_over: HandOver,
    /// `None` once it is shut down.
    tcp: Option<tcp::Server>,
    http3: Vec<h3::Running>,
    background: BackgroundTasks,
    handed_over: AtomicBool,
    shards: Shards,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Running {
    /// Where it listens, for UDP and TCP alike.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The threads that answer.
    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Who is told what happens.
    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Serves by other settings from the next request on. What belongs to ports, and to the log, stays as it is until
    /// a restart, and a notice says so.
    ///
    /// # Errors
    /// If the settings cannot be used; those before stay in force.
    pub fn reload(&mut self, settings: Settings) -> Result<(), FrontError> {
        let fixed = self.needs_restart(&settings);
        if !fixed.is_empty() {
            self.notices.say(&format!("warning: changes of {} need a restart", fixed.join(", ")));
        }
        if let Some(kept) = &self.certificates {
            kept.apply(&certificates(&settings))?;
        }
        self.front.replace(&settings).inspect_err(|_| {
            // The certificates of before fit the sites of before.
            if let Some(kept) = &self.certificates {
                let _ = kept.apply(&certificates(&self.settings));
            }
        })?;
        self.settings = settings;
        Ok(())
    }

    /// Opens the access log's file anew: somebody has moved the old one.
    pub fn reopen_log(&self) {
        self.front.observer().log().reopen();
    }

    /// Starts this program anew, with the same arguments, and has the new process take over. Returns its number. This
    /// one then accepts nobody any more, and is to be [shut down](Running::shutdown). Whoever drops the future before it
    /// is ready ends the new process.
    ///
    /// # Errors
    /// Why it did not take over; this one goes on.
    pub async fn hand_over(&self) -> Result<u32, FrontError> {
        let process = self.hand_over.hand_over(&self.http3).await.map_err(FrontError::new)?;
        self.handed_over.store(true, Ordering::Relaxed);
        Ok(process)
    }

    /// Takes no more connections, and lets what is in progress finish for so long at most. What is left then is cut off,
    /// and returned: clients over HTTP/2 and HTTP/3 are told.
    pub async fn shutdown(&mut self, grace: Duration) -> Cut {
        self.shutdown_by(tokio::time::sleep(grace)).await
    }

    /// As [`Running::shutdown`], until `end` is ready.
    pub(crate) async fn shutdown_by(&mut self, end: impl Future<Output = ()>) -> Cut {
        let handed_over = self.handed_over.load(Ordering::Relaxed);
        self.front.observer().metrics().set_ready(false);
        if handed_over {
            // These are the other process's now. Otherwise certificates are looked after until the last handshake.
            self.background.end();
            self.certificates = None;
        }
        let (tcp, mut http3) = (self.tcp.take(), std::mem::take(&mut self.http3));
        let drained = async {
            let tcp = async {
                if let Some(tcp) = &tcp {
                    tcp.drain(handed_over).await;
                }
            };
            tokio::join!(tcp, h3::drain(&mut http3, handed_over));
        };
        let cut = tokio::select! {
            () = drained => Cut::default(),
            () = end => {
                self.front.observer().metrics().set_cut();
                self.under_way()
            }
        };
        // Dropped, they end at once.
        drop(tcp);
        h3::cut(http3).await;
        self.front.observer().metrics().forget_endpoints();
        self.wait_for_lines().await;
        self.flush_log();
        cut
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> Cut {
        Cut::of(self.front.observer().metrics().requests_under_way())
    }

    /// What has been cut off goes on for a moment, until it has its line in the log.
    async fn wait_for_lines(&self) {
        let written = async {
            while self.under_way().requests() > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = tokio::time::timeout(LAST_LINES, written).await;
        // What waited for its delivery was over before, and is let go of by the shard's present turn.
        let _ = tokio::time::timeout(LAST_LINES, self.shards.answer()).await;
    }

    /// Has the lines of the access log written, if that is possible within a short time.
    pub fn flush_log(&self) {
        self.front.observer().log().flush();
    }

    /// What has changed that cannot be changed while the server runs.
    fn needs_restart(&self, settings: &Settings) -> Vec<&'static str> {
        let (old, new) = (&self.settings, settings);
        // What a single request may have is up to the sites; the rest belongs to the listeners.
        let limits = Limits { body_size: old.limits.body_size, ..new.limits.clone() };
        let changes = [
            ("listen", old.listen != new.listen),
            ("redirect_http", old.redirect_http != new.redirect_http),
            ("metrics", old.metrics != new.metrics),
            ("shards", old.shards != new.shards),
            ("spin", old.spin != new.spin),
            ("drain", old.drain != new.drain),
            ("qlog", old.qlog != new.qlog),
            ("compress_certificates", old.compress_certificates != new.compress_certificates),
            ("early_data", old.accepts_early_data() != new.accepts_early_data()),
            ("origins", old.origins != new.origins),
            ("[access_log]", old.access_log != new.access_log),
            ("[limits]", old.limits != limits),
        ];
        changes.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
    }
}

fn tls_over_tcp(store: &Store, settings: &Settings) -> Result<rustls::ServerConfig, FrontError> {
    let mut tls = tcp_config(store)?;
    if !settings.compress_certificates {
        tls.cert_compressors.clear();
    }
    Ok(tls)
}

/// What only the serving process does. Dropped, it ends.
#[derive(Default)]
struct BackgroundTasks(Vec<AbortHandle>);

impl BackgroundTasks {
    fn add(&mut self, task: AbortHandle) {
        self.0.push(task);
    }

    fn end(&mut self) {
        self.0.drain(..).for_each(|task| task.abort());
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.end();
    }
}

/// Who sees every request. Users keep their places in a staged roll-out by a key in the data folder.
fn observe(settings: &Settings, log: Log, addresses: &[SocketAddr], notices: &Notices) -> Observer {
    let (key, problem) = UserKey::load(local::folder().as_deref());
    let staged = settings.sites.iter().any(|site| matches!(site.advertise, Advertise::Percent(_)));
    if let Some(problem) = problem.filter(|_| staged) {
        let problem = plain_error(&problem);
        notices.say(&format!(
            "warning: users will change sides at the next start ({problem}); set XDG_DATA_HOME"
        ));
    }
    let advertiser = Advertiser::new(addresses.iter().map(SocketAddr::port), key);
    Observer::new(log, Metrics::new(), Arc::new(advertiser), notices.clone())
}

fn bind_metrics(
    address: SocketAddr,
    inherited: &mut Inherited,
    hand_over: &mut HandOver,
) -> Result<metrics::server::Server, FrontError> {
    let bound = listen::bind_tcp(address, Role::Metrics, inherited).and_then(|tcp| {
        hand_over.add(Role::Metrics, &tcp);
        metrics::server::Server::on(tcp.listener)
    });
    bound.map_err(|error| {
        let problem = plain_error(&error);
        FrontError::new(format!(
            "cannot serve metrics at {address}: {problem}; choose another address or port"
        ))
    })
}

/// Names to the metrics who knows what.
fn report(observer: &Observer, front: &Front, store: &Store) {
    let store = store.clone();
    observer.metrics().ask_upstreams(front.ask_upstreams());
    observer.metrics().ask_certificates(move || {
        let expiry = |report: godwit_certificates::Report| CertificateExpiry {
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

/// An expired certificate is served all the same: clients say best what they think of it.
fn warn_of_dates(not_before: i64, not_after: i64, notices: &Notices) {
    let now = unix_now();
    let problem = if now >= not_after {
        format!("expired on {}", date(not_after))
    } else if now < not_before {
        format!("is not valid before {}", date(not_before))
    } else {
        return;
    };
    notices.say(&format!("warning: the certificate {problem}; clients will refuse it, so renew it"));
}
