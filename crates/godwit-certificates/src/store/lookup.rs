//! From a name to the certificates that are good for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use godwit_tls::Sha256;
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};

use super::Slot;

/// Certificates that are equally good, the preferred first.
type Candidates = Vec<Arc<CertifiedKey>>;

/// An unchangeable picture of a store.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By the whole name, in small letters.
    exact: BTreeMap<String, Candidates>,
    /// `*.example.com` by `example.com`.
    wildcard: BTreeMap<String, Candidates>,
    /// Addresses that certificates name. Nobody is looked up by them.
    addresses: BTreeSet<IpAddr>,
    /// All of them: what a client gets that names nobody known.
    all: Candidates,
}

impl Table {
    pub(super) fn of(slots: &[Arc<Slot>]) -> Table {
        let mut table = Table::default();
        for slot in slots {
            let (identity, certified) = slot.certified();
            for name in &identity.facts.names {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                // Names asked for are never addresses (RFC 6066 section 3).
                if let Ok(address) = name.parse() {
                    table.addresses.insert(address);
                    continue;
                }
                let candidates = match name.strip_prefix("*.") {
                    Some(parent) => table.wildcard.entry(parent.to_owned()).or_default(),
                    None => table.exact.entry(name).or_default(),
                };
                candidates.push(Arc::clone(&certified));
            }
            table.all.push(certified);
        }
        for candidates in table.exact.values_mut().chain(table.wildcard.values_mut()) {
            candidates.sort_by_key(|candidate| candidate.key.algorithm() == SignatureAlgorithm::RSA);
        }
        table
    }

    /// The certificate for a client that can check signatures made in the ways of `schemes`. If it can check
    /// none of them, the handshake fails later, with the alert that says so.
    pub(super) fn find(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let candidates = name.and_then(|name| self.candidates(name)).unwrap_or(&self.all);
        let usable = |candidate: &&Arc<CertifiedKey>| candidate.key.choose_scheme(schemes).is_some();
        candidates.iter().find(usable).or_else(|| candidates.first()).cloned()
    }

    /// Whether a certificate is for this name or address.
    pub(super) fn has(&self, host: &str) -> bool {
        match host.parse() {
            Ok(address) => self.addresses.contains(&address),
            Err(_) => self.candidates(host).is_some(),
        }
    }

    fn candidates(&self, name: &str) -> Option<&Candidates> {
        let lowered;
        let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lowered = name.to_ascii_lowercase();
            &lowered
        } else {
            name
        };
        let parent = || name.split_once('.').map(|(_, parent)| parent);
        self.exact.get(name).or_else(|| self.wildcard.get(parent()?))
    }

    /// Whether nobody would see a difference.
    pub(super) fn shows_the_same(&self, other: &Table) -> bool {
        let same = |(one, other): (&Arc<CertifiedKey>, &Arc<CertifiedKey>)| one.cert == other.cert;
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(same)
    }

    /// The same where nobody would see a difference, also in another process.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut context = Sha256::new();
        for certified in &self.all {
            context.update(&(certified.cert.len() as u64).to_be_bytes());
            for certificate in &certified.cert {
                context.update(&(certificate.len() as u64).to_be_bytes());
                context.update(certificate);
            }
        }
        context.finish()
    }
}
