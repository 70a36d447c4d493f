//! `[[certificate]]`: the files are read and must fit together.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::problems::Problems;
use super::reader::Table;
use crate::settings::{CertificateFiles, HostPattern};
use godwit_certificates::from_files;
use godwit_text::{date, unix_now};

/// A certificate that can be used.
#[derive(Debug)]
pub(super) struct Certificate {
    pub(super) files: CertificateFiles,
    /// In lower case.
    pub(super) names: Vec<String>,
}

impl Certificate {
    pub(super) fn read(table: Table<'_>, problems: &Problems) -> Option<Certificate> {
        let file = |key: &'static str, what: &str| -> Option<(PathBuf, usize)> {
            if !table.has(key) {
                problems.problem(
                    table.at,
                    format_args!("[[certificate]] needs `{key}`, the path of {what}; add it"),
                );
            }
            let text = table.text(key, &format!("the path of {what} (PEM)"))?;
            Some((problems.resolve(text.text), text.at))
        };
        let chain = file("cert", "the certificate chain");
        let key = file("key", "the private key");
        let certificate = Certificate::load(&table, problems, chain, key);
        table.finish();
        certificate
    }

    fn load(
        table: &Table<'_>,
        problems: &Problems,
        chain: Option<(PathBuf, usize)>,
        key: Option<(PathBuf, usize)>,
    ) -> Option<Certificate> {
        let ((chain, chain_at), (key, key_at)) = (chain?, key?);
        let mut there = true;
        for (name, path, at) in [("cert", &chain, chain_at), ("key", &key, key_at)] {
            if !path.is_file() {
                let what = if path.is_dir() { "it is a folder" } else { "there is no such file" };
                table.wrong(
                    at,
                    name,
                    format_args!("cannot read {}: {what}; correct the path", path.display()),
                );
                there = false;
            }
        }
        if !there {
            return None;
        }
        let identity = match from_files(&chain, &key) {
            Ok(identity) => identity,
            Err(failure) => {
                let failure = failure.to_string();
                let of_key = failure.starts_with("private key") || failure.starts_with("the key");
                problems.problem(if of_key { key_at } else { chain_at }, failure);
                return None;
            }
        };
        let (facts, now) = (identity.facts, unix_now());
        let end = date(facts.not_after);
        if now >= facts.not_after {
            let shown = chain.display();
            problems.warning(chain_at, format_args!("the certificate {shown} expired on {end}; renew it"));
        } else if now < facts.not_before {
            let begin = date(facts.not_before);
            let shown = chain.display();
            problems.warning(
                chain_at,
                format_args!("the certificate {shown} is not valid before {begin}; check the clock"),
            );
        }
        let names = facts.names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Some(Certificate { files: CertificateFiles { chain, key }, names })
    }

    /// Whether clients that ask for such a host accept this certificate.
    pub(super) fn covers(&self, host: &HostPattern) -> bool {
        self.names.iter().any(|name| match (name.strip_prefix("*."), host) {
            (_, HostPattern::Any) => true,
            (Some(parent), HostPattern::Wildcard(host)) => parent == host,
            (None, HostPattern::Wildcard(_)) => false,
            (Some(parent), HostPattern::Exact(host)) => {
                host.split_once('.').is_some_and(|(_, rest)| rest == parent)
            }
            (None, HostPattern::Exact(host)) => name == host,
        })
    }
}

/// A PEM file with root certificates must have one.
pub(super) fn check_roots(table: &Table<'_>, key: &str, path: &Path, at: usize) {
    let shown = path.display();
    let remedy = "give a PEM file with the root certificate";
    match godwit_text::read_file(path) {
        Err(error) => {
            let why = godwit_text::plain_error(&error);
            table.wrong(at, key, format_args!("cannot read {shown}: {why}; {remedy}"));
        }
        Ok(text) => {
            if !CertificateDer::pem_slice_iter(&text).any(|certificate| certificate.is_ok()) {
                table.wrong(at, key, format_args!("there is no certificate in {shown}; {remedy}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::values::host;

    #[test]
    fn names_cover_hosts() {
        let files = CertificateFiles { chain: PathBuf::new(), key: PathBuf::new() };
        let names = ["example.com", "*.example.com", "::1"].map(str::to_owned).to_vec();
        let certificate = Certificate { files, names };
        for (text, covered) in [
            ("example.com", true),
            ("www.example.com", true),
            ("*.example.com", true),
            ("a.b.example.com", false),
            ("*.www.example.com", false),
            ("[::1]", true),
            ("example.org", false),
            ("*", true),
        ] {
            assert_eq!(certificate.covers(&host(text).unwrap()), covered, "{text}");
        }
    }
}
