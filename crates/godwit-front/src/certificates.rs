//! Makes of the configuration what `godwit_certificates` wants to know.

use super::settings::{Challenge, HostPattern, Settings, Site, SiteTls};
use godwit_certificates::{FilePair, acme};

/// Where the certificates of all sites come from.
pub(super) fn certificates(settings: &Settings) -> godwit_certificates::Settings {
    let sites = |tls| settings.sites.iter().filter(move |site| site.tls == tls);
    let files = settings.certificates.iter();
    let pair = |files: &super::settings::CertificateFiles| FilePair {
        certificate: files.chain.clone(),
        key: files.key.clone(),
    };
    let local: Vec<&Site> = sites(SiteTls::Local).collect();
    godwit_certificates::Settings {
        files: files.map(pair).collect(),
        orders: sites(SiteTls::Acme).map(names).collect(),
        acme: settings.acme.as_ref().map(|acme| acme::Settings {
            directory: acme.directory.clone(),
            email: acme.email.clone(),
            accept_terms: acme.accept_terms,
            folder: acme.folder.clone(),
            method: match acme.challenge {
                Challenge::TlsAlpn01 => acme::Method::TlsAlpn01,
                Challenge::Http01 => acme::Method::Http01,
            },
            ca: acme.ca.clone(),
        }),
        local: (!local.is_empty()).then(|| local.into_iter().flat_map(names).collect()),
    }
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
