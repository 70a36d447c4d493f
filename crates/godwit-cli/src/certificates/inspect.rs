//! What a certificate says about itself.

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate's names, validity and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The subject alternative names, DNS names first as they stand, addresses in their usual notation.
    pub(crate) names: Vec<String>,
    /// Seconds since 1970.
    pub(crate) not_before: i64,
    /// Seconds since 1970.
    pub(crate) not_after: i64,
    /// Base64 of the SHA-256 of the public key (its `SubjectPublicKeyInfo` in DER), as browsers pin it.
    pub(crate) pin: String,
    /// The issuer's distinguished name.
    pub(crate) issuer: String,
    /// The subject's distinguished name.
    pub(crate) subject: String,
}

impl Facts {
    /// Reads a certificate.
    ///
    /// # Errors
    /// In words, if it is not an X.509 certificate.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Facts, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|_| "what it holds is not an X.509 certificate".to_owned())?;
        let names = match parsed.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.iter().filter_map(name).collect(),
            _ => Vec::new(),
        };
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, parsed.public_key().raw);
        Ok(Facts {
            names,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            pin: base64(digest.as_ref()),
            issuer: parsed.issuer().to_string(),
            subject: parsed.subject().to_string(),
        })
    }

    /// The names for a sentence: at most five, and the subject where there are none.
    pub(crate) fn names_in_words(&self) -> String {
        match self.names.len() {
            0 => self.subject.clone(),
            1..=5 => self.names.join(", "),
            more => format!("{} and {} more", self.names[..4].join(", "), more - 4),
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

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0_u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(group.get(index).copied().unwrap_or(0));
        }
        for index in 0..4 {
            let value = (bits >> (18 - 6 * index) & 63) as usize;
            text.push(if index <= group.len() { char::from(ALPHABET[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_rfc() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in cases {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
