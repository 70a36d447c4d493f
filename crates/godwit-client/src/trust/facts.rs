//! What a certificate says about itself.

use std::net::IpAddr;

use base64::prelude::{BASE64_STANDARD, Engine};
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate's names, validity and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The subject alternative names, DNS names first as they stand, addresses in their usual notation.
    pub names: Vec<String>,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
    /// Base64 of the SHA-256 of the public key (its `SubjectPublicKeyInfo` in DER), as browsers pin it.
    pub pin: String,
    /// The issuer's distinguished name.
    pub issuer: String,
    /// The subject's distinguished name.
    pub subject: String,
}

impl Facts {
    /// Reads a certificate.
    ///
    /// # Errors
    /// In words, if it is not an X.509 certificate.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Facts, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|_| "what it holds is not an X.509 certificate".to_owned())?;
        let names = match parsed.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.iter().filter_map(name).collect(),
            _ => Vec::new(),
        };
        let digest = godwit_tls::sha256(parsed.public_key().raw);
        Ok(Facts {
            names,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            pin: BASE64_STANDARD.encode(digest),
            issuer: parsed.issuer().to_string(),
            subject: parsed.subject().to_string(),
        })
    }

    /// The names for a sentence: at most five, and the subject where there are none.
    pub fn names_in_words(&self) -> String {
        match self.names.len() {
            0 => self.subject.clone(),
            1..=5 => self.names.join(", "),
            more => {
                let first = self.names.get(..4).unwrap_or_default();
                format!("{} and {} more", first.join(", "), more.saturating_sub(4))
            }
        }
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(dns) => Some((*dns).to_owned()),
        GeneralName::IPAddress(octets) => {
            let address = match octets.len() {
                4 => <[u8; 4]>::try_from(*octets).ok().map(IpAddr::from),
                _ => <[u8; 16]>::try_from(*octets).ok().map(IpAddr::from),
            };
            address.map(|address| address.to_string())
        }
        _ => None,
    }
}
