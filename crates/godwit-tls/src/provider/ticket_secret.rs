//! The secrets of session tickets, where they can be seen and replaced.
//!
//! rustls derives the secret of a ticket (RFC 8446 section 4.6.1, the label "resumption") and keeps it where nobody
//! else can read it, so that no ticket would outlive the process. But it derives it with the HKDF of the cipher
//! suite, and those of [`super::provider`] are ours: within [`taking`] the secret is set aside for [`taken`], within
//! [`giving`] it is one that was set aside long ago. Everywhere else this is the HKDF of `hkdf` and nothing more.
//!
//! Invariant: what is set aside belongs to the calling thread and is gone when [`taking`] returns.

use rustls::Error;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{ActiveKeyExchange, hmac};
use std::cell::RefCell;

/// How TLS names the derivation, with its prefix (RFC 8446 section 7.1).
const LABEL: [&[u8]; 2] = [b"tls13 ", b"resumption"];

enum Work {
    Take(Option<Vec<u8>>),
    Give(Vec<u8>),
}

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Ends the work of this thread, even if TLS panics.
struct Shift;

impl Shift {
    fn begin(work: Work) -> Self {
        WORK.with_borrow_mut(|now| *now = Some(work));
        Shift
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        WORK.with_borrow_mut(|now| *now = None);
    }
}

/// Calls `act`, during which [`taken`] tells the secret of the ticket that TLS has just read.
pub(crate) fn taking<R>(act: impl FnOnce() -> R) -> R {
    let _shift = Shift::begin(Work::Take(None));
    act()
}

/// The secret that was derived last on this thread, once; only within [`taking`].
pub(crate) fn taken() -> Option<Vec<u8>> {
    WORK.with_borrow_mut(|work| match work {
        Some(Work::Take(secret)) => secret.take(),
        _ => None,
    })
}

/// Calls `act`, during which a ticket that TLS reads has this secret. A secret of another length than the suite's
/// hash is not used.
pub(crate) fn giving<R>(secret: &[u8], act: impl FnOnce() -> R) -> R {
    let _shift = Shift::begin(Work::Give(secret.to_vec()));
    act()
}

/// The HKDF of a suite, with an eye on tickets.
pub(super) struct TicketHkdf(pub(super) &'static dyn Hkdf);

impl Hkdf for TicketHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.0.extract_from_secret(salt, secret)
    }

    fn extract_from_kx_shared_secret(
        &self,
        salt: Option<&[u8]>,
        exchange: Box<dyn ActiveKeyExchange>,
        peer: &[u8],
    ) -> Result<Box<dyn HkdfExpander>, Error> {
        self.0.extract_from_kx_shared_secret(salt, exchange, peer)
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        let expander = self.0.expander_for_okm(okm);
        if WORK.with_borrow(Option::is_some) { Box::new(TicketExpander(expander)) } else { expander }
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        self.0.hmac_sign(key, message)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

struct TicketExpander(Box<dyn HkdfExpander>);

impl HkdfExpander for TicketExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        self.0.expand_slice(info, output)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let derived = self.0.expand_block(info);
        // Length, length of the label, label in two parts, and the context.
        if info.get(2..4) != Some(&LABEL) {
            return derived;
        }
        WORK.with_borrow_mut(|work| match work {
            Some(Work::Take(secret)) => {
                *secret = Some(derived.as_ref().to_vec());
                derived
            }
            Some(Work::Give(secret)) if secret.len() == derived.as_ref().len() => OkmBlock::new(secret),
            _ => derived,
        })
    }

    fn hash_len(&self) -> usize {
        self.0.hash_len()
    }
}
