//! The settings that the command line alone makes: one site for every host.

use super::settings::*;
use crate::serve::{Arguments, example};
use godwit_layers::files::FolderSettings;

impl Settings {
    /// One site: a folder, a proxy or the example, as the flags say.
    pub(crate) fn of_arguments(arguments: &Arguments) -> Settings {
        let handler = match (&arguments.directory, arguments.proxy.as_slice()) {
            (Some(folder), _) => {
                let mut files = FolderSettings::new(folder);
                files.precompressed = true;
                Handler::Files(files)
            }
            (None, []) => Handler::Pages(&example::PAGES),
            (None, upstreams) => Handler::Proxy(Box::new(Proxy::to(upstreams.to_vec()))),
        };
        let mut site = Site::catch_all(handler);
        let certificates: Vec<CertificateFiles> = (arguments.cert.iter().cloned())
            .zip(arguments.key.iter().cloned())
            .map(|(chain, key)| CertificateFiles { chain, key })
            .collect();
        if !certificates.is_empty() {
            site.tls = SiteTls::Files;
        }
        Settings {
            listen: arguments.listen.clone(),
            metrics: arguments.metrics,
            shards: arguments.shards.unwrap_or(std::num::NonZeroU8::MIN),
            qlog: arguments.qlog.clone(),
            access_log: access_log(arguments),
            certificates,
            sites: vec![site],
            ..Settings::default()
        }
    }
}

/// A file gets JSON, a terminal lines for a person.
fn access_log(arguments: &Arguments) -> AccessLog {
    let (target, format) = match &arguments.access_log {
        Some(file) if file.as_os_str() == "-" => (LogTarget::Stdout, LogFormat::Json),
        Some(file) => (LogTarget::File(file.clone()), LogFormat::Json),
        None if arguments.quiet => (LogTarget::None, LogFormat::Terminal),
        None => (LogTarget::Stdout, LogFormat::Terminal),
    };
    AccessLog { target, format, client_address: ClientAddress::Full }
}
