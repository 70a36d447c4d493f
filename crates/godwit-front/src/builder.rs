//! Says step by step what to serve.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use godwit_body::{BoxBody, BoxError};
use godwit_certificates::Notices;
use godwit_layers::files::FolderSettings;
use godwit_text::Style;
use http::{Request, Response};

use super::FrontError;
use super::inherited::Inherited;
use super::server::{Plan, Server};
use super::service::RouteService;
use super::settings::{
    CertificateFiles, Datapath, Handler, LogTarget, PathPattern, Route, Settings, Site, SiteTls,
};

/// How long requests in progress may take at the end, where nothing else is said.
const GRACE: Duration = Duration::from_secs(30);

/// What to serve, and how. [`Builder::bind`] ends it.
#[derive(Debug)]
pub struct Builder {
    plan: Plan,
    /// Routes of the site for every host.
    routes: Vec<Route>,
}

impl Default for Builder {
    fn default() -> Builder {
        let mut settings = Settings::default();
        settings.access_log.target = LogTarget::None;
        let plan = Plan {
            settings,
            notices: Notices::ignored(),
            inherited: Inherited::default(),
            datapath: Datapath::default(),
            grace: GRACE,
            style: Style::PLAIN,
        };
        Builder { plan, routes: Vec::new() }
    }
}

impl Server {
    /// Says step by step what to serve.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// All of this in place of what was said before.
    pub fn settings(mut self, settings: Settings) -> Builder {
        self.plan.settings = settings;
        self
    }

    /// Listens at this address too, for UDP and TCP alike; with port 0 at any that is free.
    pub fn listen(mut self, address: SocketAddr) -> Builder {
        self.plan.settings.listen.push(address);
        self
    }

    /// Shows this certificate to those who ask for its names. Without any, one is made by an authority of this user's
    /// own.
    pub fn certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Builder {
        self.plan.settings.certificates.push(CertificateFiles { chain: chain.into(), key: key.into() });
        self
    }

    /// Serves this site too.
    pub fn site(mut self, site: Site) -> Builder {
        self.plan.settings.sites.push(site);
        self
    }

    /// Has a `tower` service answer every request whose path begins so, at every host that has no site of its own. It
    /// sees the whole path.
    pub fn service<S, B>(self, prefix: &str, service: S) -> Builder
    where
        S: tower::Service<Request<BoxBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + Send,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.route(prefix, None, Handler::Service(RouteService::new(service)))
    }

    /// Serves a folder to every request whose path begins so, at every host that has no site of its own. What the path
    /// begins with is taken off it.
    pub fn files(self, prefix: &str, files: FolderSettings) -> Builder {
        let strip = prefix.trim_end_matches('/');
        let strip = (!strip.is_empty()).then(|| strip.to_owned());
        self.route(prefix, strip, Handler::Files(files))
    }

    fn route(mut self, prefix: &str, strip_prefix: Option<String>, handler: Handler) -> Builder {
        let path = PathPattern::Prefix(prefix.to_owned());
        self.routes.push(Route { path, methods: Vec::new(), strip_prefix, early_data: None, handler });
        self
    }

    /// Tells the operator what happens.
    pub fn notices(mut self, notices: Notices) -> Builder {
        self.plan.notices = notices;
        self
    }

    /// Takes the places of sockets that a service manager, or an older process, has opened.
    pub fn inherited(mut self, inherited: Inherited) -> Builder {
        self.plan.inherited = inherited;
        self
    }

    /// How UDP is sent and received.
    pub fn datapath(mut self, datapath: Datapath) -> Builder {
        self.plan.datapath = datapath;
        self
    }

    /// How long requests in progress may take at the end, where the settings do not say.
    pub fn grace(mut self, grace: Duration) -> Builder {
        self.plan.grace = grace;
        self
    }

    /// How lines of the access log look that go to the standard output.
    pub fn style(mut self, style: Style) -> Builder {
        self.plan.style = style;
        self
    }

    /// Does everything that can fail: reads certificates and folders, binds the ports, opens the log. In a tokio
    /// runtime with its I/O and time.
    ///
    /// # Errors
    /// What keeps it from serving, in one sentence.
    pub fn bind(mut self) -> Result<Server, FrontError> {
        if !self.routes.is_empty() {
            let mut site = Site::catch_all(Handler::Pages(&[]));
            site.routes = std::mem::take(&mut self.routes);
            if !self.plan.settings.certificates.is_empty() {
                site.tls = SiteTls::Files;
            }
            self.plan.settings.sites.push(site);
        }
        if self.plan.settings.sites.is_empty() {
            return Err(FrontError::new("there is nothing to serve; give a site, a service or a folder"));
        }
        Server::bind(self.plan)
    }
}
