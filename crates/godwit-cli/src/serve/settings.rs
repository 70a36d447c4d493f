//! The settings that the command line alone makes: one site for every host.

use godwit_front::FolderSettings;
use godwit_front::settings::{
    AccessLog, CertificateFiles, Handler, LogFormat, LogTarget, Proxy, Settings, Site, SiteTls, every_core,
};

use super::{Arguments, example};

/// One site: a folder, a proxy or the example, as the flags say.
pub(super) fn of_arguments(arguments: &Arguments) -> Settings {
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
        .map(|(chain, key)| CertificateFiles::new(chain, key))
        .collect();
    if !certificates.is_empty() {
        site.tls = SiteTls::Files;
    }
    let mut settings = Settings::default();
    settings.listen.clone_from(&arguments.listen);
    settings.metrics = arguments.metrics;
    settings.shards = arguments.shards.unwrap_or_else(every_core);
    settings.spin = arguments.spin.unwrap_or_default();
    settings.qlog.clone_from(&arguments.qlog);
    settings.access_log = access_log(arguments);
    settings.certificates = certificates;
    settings.sites = vec![site];
    settings
}

/// A file gets JSON, a terminal lines for a person.
fn access_log(arguments: &Arguments) -> AccessLog {
    let mut log = AccessLog::default();
    (log.target, log.format) = match &arguments.access_log {
        Some(file) if file.as_os_str() == "-" => (LogTarget::Stdout, LogFormat::Json),
        Some(file) => (LogTarget::File(file.clone()), LogFormat::Json),
        None if arguments.quiet => (LogTarget::None, LogFormat::Terminal),
        None => (LogTarget::Stdout, LogFormat::Terminal),
    };
    log
}
