//! Makes of the configuration what `godwit_certificates` wants to know.

use super::settings::{Acme, Challenge, HostPattern, Settings, Site, SiteTls};
use godwit_certificates::{FilePair, acme};

/// Where the certificates of all sites come from.
pub(super) fn certificates(settings: &Settings) -> godwit_certificates::Settings {
    let sites = |tls| settings.sites.iter().filter(move |site| site.tls == tls);
    let local: Vec<&Site> = sites(SiteTls::Local).collect();
    let mut certificates = godwit_certificates::Settings::default();
    certificates.files =
        settings.certificates.iter().map(|files| FilePair::new(&files.chain, &files.key)).collect();
    certificates.orders = sites(SiteTls::Acme).map(names).collect();
    certificates.acme = settings.acme.as_ref().map(acme);
    certificates.local = (!local.is_empty()).then(|| local.into_iter().flat_map(names).collect());
    certificates
}

fn acme(settings: &Acme) -> acme::Settings {
    let mut acme = acme::Settings::default();
    acme.directory.clone_from(&settings.directory);
    acme.email.clone_from(&settings.email);
    acme.accept_terms = settings.accept_terms;
    acme.folder.clone_from(&settings.folder);
    acme.method = match settings.challenge {
        Challenge::TlsAlpn01 => acme::Method::TlsAlpn01,
        Challenge::Http01 => acme::Method::Http01,
    };
    acme.ca.clone_from(&settings.ca);
    acme
}

fn names(site: &Site) -> Vec<String> {
    let named = site.hosts.iter().filter(|host| **host != HostPattern::Any);
    named.map(HostPattern::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Handler;

    #[test]
    fn every_site_has_its_source() {
        let site = |tls, host: &str| Site {
            tls,
            hosts: vec![HostPattern::Exact(host.to_owned()), HostPattern::Any],
            ..Site::catch_all(Handler::Pages(&[]))
        };
        let sites = vec![
            site(SiteTls::Local, "a"),
            site(SiteTls::Acme, "b"),
            site(SiteTls::Acme, "c"),
            site(SiteTls::Files, "d"),
        ];
        let made = certificates(&Settings { sites, ..Settings::default() });
        assert_eq!(made.orders, [["b"], ["c"]]);
        assert_eq!(made.local, Some(vec!["a".to_owned()]));
        assert_eq!(certificates(&Settings::default()).local, None);
    }
}
