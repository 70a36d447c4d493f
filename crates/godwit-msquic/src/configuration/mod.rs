//! Configurations: protocols, settings and credentials that connections are started and accepted with.

mod early;
mod transport;

pub(crate) use early::{EarlyTickets, Random};

use crate::abi::{ServerResumptionLevel, Setting, SettingValues, Status};
use crate::context::Context;
use crate::credential::{Credential, SecretsWriter};
use crate::handle::Kind;
use crate::objects::Table;
use crate::parameters::{self, Choice};
use crate::registration::Registration;
use crate::settings;
use bytes::Bytes;
use godwit_transport::{Cibir, CidIdentifier, ClientConfig, ServerConfig};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All configurations.
pub(crate) static CONFIGURATIONS: Table<Configuration> = Table::new(Kind::Configuration);

/// A configuration.
pub(crate) struct Configuration {
    registration: Arc<Registration>,
    alpn: Vec<Vec<u8>>,
    early_tickets: EarlyTickets,
    state: Mutex<State>,
}

/// What a connection has of its own: it is made for the one then.
pub(crate) struct Own<'a> {
    pub(crate) settings: &'a SettingValues,
    /// Who writes its secrets.
    pub(crate) secrets: Option<&'a SecretsWriter>,
    /// What was said of its versions.
    pub(crate) versions: &'a Choice,
    /// 1-RTT packets are plaintext, if the peer wants that as well.
    pub(crate) without_encryption: bool,
    /// What its connection ids and the peer's have in them.
    pub(crate) identifier: Option<CidIdentifier>,
}

impl Own<'_> {
    /// Whoever uses identifiers has peers that do, and nobody else.
    fn cibir(&self) -> Cibir {
        self.identifier.map_or(Cibir::Refused, Cibir::Used)
    }

    fn is_nothing(&self) -> bool {
        let is_usual = self.versions.is_nothing() && !self.without_encryption && self.identifier.is_none();
        self.settings.is_set_flags() == 0 && self.secrets.is_none() && is_usual
    }
}

struct State {
    context: Context,
    settings: SettingValues,
    versions: Choice,
    credential: Option<Arc<Credential>>,
    /// What was made of all that, so that it is made once.
    client: Option<Arc<ClientConfig>>,
    servers: Vec<(Bytes, Arc<ServerConfig>)>,
}

impl Configuration {
    /// A configuration without credentials.
    pub(crate) fn new(
        registration: Arc<Registration>,
        alpn: Vec<Vec<u8>>,
        settings: SettingValues,
        context: Context,
    ) -> Self {
        registration.on_child_opened();
        let state = State {
            context,
            settings,
            versions: Choice::default(),
            credential: None,
            client: None,
            servers: Vec::new(),
        };
        let early_tickets = EarlyTickets::default();
        Configuration { registration, alpn, early_tickets, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn context(&self) -> Context {
        self.state().context
    }

    pub(crate) fn set_context(&self, context: Context) {
        self.state().context = context;
    }

    /// A setting of it, or what holds where it has none of its own.
    pub(crate) fn setting(&self, setting: Setting) -> u64 {
        settings::said(&self.state().settings, setting).unwrap_or_else(|| settings::global(setting))
    }

    /// Those settings that are its own.
    pub(crate) fn settings(&self) -> SettingValues {
        self.state().settings
    }

    /// Changes settings, for connections that begin from now on.
    ///
    /// # Errors
    /// As [`settings::apply`] has them.
    pub(crate) fn change_settings(&self, changed: &SettingValues) -> Result<(), Status> {
        let mut state = self.state();
        settings::apply(&mut state.settings, changed, false)?;
        state.forget_made();
        Ok(())
    }

    /// What holds for all has changed.
    pub(crate) fn on_globals_changed(&self) {
        self.state().forget_made();
    }

    /// Looks at what it says of versions, or changes it.
    pub(crate) fn with_versions<R>(&self, visit: impl FnOnce(&mut Choice) -> R) -> R {
        let mut state = self.state();
        state.forget_made();
        visit(&mut state.versions)
    }

    /// The tickets given out that are good for 0-RTT.
    pub(crate) const fn early_tickets(&self) -> &EarlyTickets {
        &self.early_tickets
    }

    /// The credentials, once they are loaded.
    pub(crate) fn credential(&self) -> Option<Arc<Credential>> {
        self.state().credential.clone()
    }

    /// Loads credentials in the place of those before.
    pub(crate) fn set_credential(&self, credential: Credential) {
        let mut state = self.state();
        state.credential = Some(Arc::new(credential));
        state.forget_made();
    }

    /// The first of its protocols that a client has offered.
    pub(crate) fn choose(&self, offered: &[&[u8]]) -> Option<Bytes> {
        let chosen = self.alpn.iter().find(|protocol| offered.contains(&protocol.as_slice()))?;
        Some(Bytes::copy_from_slice(chosen))
    }

    /// What a client's connection is begun with, some of which may be its own.
    ///
    /// # Errors
    /// If the credentials are of no use for clients.
    pub(crate) fn client(&self, own: &Own<'_>) -> Result<Arc<ClientConfig>, Status> {
        let mut state = self.state();
        let is_common = own.is_nothing();
        if let (true, Some(made)) = (is_common, &state.client) {
            return Ok(Arc::clone(made));
        }
        let credential = state.credential.clone().ok_or(Status::INVALID_PARAMETER)?;
        let tls = credential.client_tls(&self.alpn, true)?;
        let tls = own.secrets.map_or_else(|| Arc::clone(&tls), |secrets| secrets.client(&tls));
        let mut transport = transport::config(&merged(&state.settings, own.settings), &credential)?;
        transport.danger_without_encryption = own.without_encryption;
        transport.cibir = own.cibir();
        let mut config = ClientConfig::new(tls, Arc::new(transport));
        config.late_tickets = true;
        config.resumption.verifier = Some(Arc::clone(credential.server_verifier()));
        let versions = parameters::versions_of_client([own.versions, &state.versions]);
        (config.version, config.versions) = (versions.first, versions.offered);
        let config = Arc::new(config);
        if is_common {
            state.client = Some(Arc::clone(&config));
        }
        Ok(config)
    }

    /// What a server's connection is accepted with that has agreed on a protocol.
    ///
    /// # Errors
    /// If the credentials are of no use for servers, or the protocol is not one of its own.
    pub(crate) fn server(&self, own: &Own<'_>, alpn: &Bytes) -> Result<Arc<ServerConfig>, Status> {
        let mut state = self.state();
        let is_common = own.is_nothing();
        let made = state.servers.iter().find(|(made, _)| made == alpn).filter(|_| is_common);
        if let Some((_, made)) = made {
            return Ok(Arc::clone(made));
        }
        if !self.alpn.iter().any(|protocol| protocol == alpn) {
            return Err(Status::INVALID_PARAMETER);
        }
        let credential = state.credential.clone().ok_or(Status::INVALID_PARAMETER)?;
        let settings = merged(&state.settings, own.settings);
        let level = settings.get(Setting::ServerResumptionLevel).unwrap_or_default();
        let resumes = level != u64::from(ServerResumptionLevel::NO_RESUME.0);
        let tls = credential.server_tls(&[alpn.to_vec()], resumes)?;
        let tls = own.secrets.map_or_else(|| Arc::clone(&tls), |secrets| secrets.server(&tls));
        let mut transport = transport::config(&settings, &credential)?;
        transport.danger_without_encryption = own.without_encryption;
        transport.cibir = own.cibir();
        let mut config = ServerConfig::new(tls, Arc::new(transport));
        config.withhold_tickets = resumes;
        let config = Arc::new(config);
        if is_common {
            state.servers.push((alpn.clone(), Arc::clone(&config)));
        }
        Ok(config)
    }
}

impl State {
    fn forget_made(&mut self) {
        self.client = None;
        self.servers.clear();
    }
}

/// What is set on a connection, else on its configuration, else for all.
fn merged(configured: &SettingValues, own: &SettingValues) -> SettingValues {
    settings::over(&settings::globals(), &[configured, own])
}

impl Drop for Configuration {
    fn drop(&mut self) {
        self.registration.on_child_closed();
    }
}
