//! The proofs, asked for by an ACME server, that this server is who it says: kept while the check is going on.
//!
//! A name is proved either by a certificate that is shown to whoever speaks `acme-tls/1` (RFC 8737), or by a
//! text under a path of plain HTTP (RFC 8555 section 8.3).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;

use crate::provider;

/// Longer than any path or name for which there is an answer.
const LONGEST: usize = 300;

/// One proof.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A certificate by name.
    Tls(String, Arc<CertifiedKey>),
    /// A text by token.
    Http(String, String),
}

impl Answer {
    /// The certificate that proves `name`: it carries the digest of the key authorization in an extension
    /// (RFC 8737 section 3).
    ///
    /// # Errors
    /// In words, if the name cannot stand in a certificate.
    pub(super) fn tls(name: &str, digest: &[u8]) -> Result<Answer, String> {
        let words = |error: rcgen::Error| format!("cannot make a certificate that proves {name}: {error}");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(words)?;
        let mut params = CertificateParams::new([name.to_owned()]).map_err(words)?;
        params.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
        let certificate = params.self_signed(&key).map_err(words)?;
        let private = PrivateKeyDer::try_from(key.serialize_der())?;
        let signer = provider()
            .key_provider
            .load_private_key(private)
            .map_err(|error| format!("cannot use the key that proves {name}: {error}"))?;
        // Not `from_der`, which does not know the critical extension and refuses it.
        let certified = CertifiedKey::new(vec![certificate.der().clone()], signer);
        Ok(Answer::Tls(name.to_ascii_lowercase(), Arc::new(certified)))
    }

    #[cfg(test)]
    pub(crate) fn leaf(&self) -> Option<rustls::pki_types::CertificateDer<'static>> {
        match self {
            Answer::Tls(_, certified) => certified.cert.first().cloned(),
            Answer::Http(..) => None,
        }
    }
}

#[cfg(test)]
pub(crate) fn test_answer(name: &str) -> Answer {
    Answer::tls(name, &[7; 32]).unwrap()
}

/// The answers that are held ready. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenges(Arc<Mutex<Ready>>);

#[derive(Debug, Default)]
struct Ready {
    tls: BTreeMap<String, Arc<CertifiedKey>>,
    http: BTreeMap<String, String>,
}

impl Challenges {
    /// Gives these answers to who asks, until the returned value is dropped.
    #[must_use]
    pub(crate) fn open(&self, answers: Vec<Answer>) -> Open {
        let mut ready = self.ready();
        let mut keys = Vec::new();
        for answer in answers {
            match answer {
                Answer::Tls(name, certified) => {
                    ready.tls.insert(name.clone(), certified);
                    keys.push(name);
                }
                Answer::Http(token, text) => {
                    ready.http.insert(token.clone(), text);
                    keys.push(token);
                }
            }
        }
        Open { challenges: self.clone(), keys }
    }

    pub(crate) fn tls(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        if name.len() > LONGEST {
            return None;
        }
        self.ready().tls.get(&name.to_ascii_lowercase()).cloned()
    }

    pub(crate) fn http(&self, token: &str) -> Option<String> {
        self.ready().http.get(token).cloned()
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers that are withdrawn when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    challenges: Challenges,
    /// Names and tokens: a name has a dot, a token has none.
    keys: Vec<String>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut ready = self.challenges.ready();
        for key in &self.keys {
            ready.tls.remove(key);
            ready.http.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_there_while_the_check_goes_on() {
        let challenges = Challenges::default();
        let open = challenges.open(vec![Answer::Http("token".to_owned(), "token.thumb".to_owned())]);
        assert_eq!(challenges.http("token").as_deref(), Some("token.thumb"));
        assert_eq!(challenges.http("other"), None);
        drop(open);
        assert_eq!(challenges.http("token"), None);
    }

    #[test]
    fn the_proof_has_the_critical_extension_and_the_one_name() {
        use x509_parser::prelude::{FromDer, X509Certificate};
        let leaf = test_answer("A.test").leaf().unwrap();
        let (_, parsed) = X509Certificate::from_der(&leaf).unwrap();
        let extension =
            parsed.iter_extensions().find(|extension| extension.oid.to_string() == "1.3.6.1.5.5.7.1.31");
        let extension = extension.unwrap();
        assert!(extension.critical);
        // An OCTET STRING of 32 bytes.
        assert_eq!(extension.value, [&[4, 32][..], &[7; 32]].concat());
        assert_eq!(crate::Facts::read(&leaf).unwrap().names, ["A.test"]);
    }
}
