//! What an application is told of the peer's certificates.

use super::portable;
use crate::abi::{Buffer, PeerCertificateReceived, Status, TlsAlertCode};
use rustls::pki_types::CertificateDer;
use std::ffi::c_void;
use std::ptr;

/// The peer's certificates as the event `PEER_CERTIFICATE_RECEIVED` has them.
///
/// They are always in the portable form, also for applications that did not ask for it (with
/// `USE_PORTABLE_CERTIFICATES`): there is no OpenSSL here whose objects could be handed out.
#[derive(Debug, Clone)]
pub(crate) struct PeerCertificate {
    /// The peer's own, in DER; none if it has shown none.
    pub(crate) certificate: Option<Vec<u8>>,
    /// All that it has shown, as a message of PKCS #7.
    pub(crate) chain: Option<Vec<u8>>,
    /// What is wrong with them, if the application is to judge that.
    pub(crate) deferred_status: Status,
}

impl PeerCertificate {
    pub(super) fn new(chain: &[CertificateDer<'_>], deferred_status: Status) -> Self {
        PeerCertificate {
            certificate: chain.first().map(|own| own.to_vec()),
            chain: if chain.is_empty() { None } else { portable::message(chain) },
            deferred_status,
        }
    }

    /// The alert with which the connection ends if the application refuses them in the event (RFC 8446, section 6.2):
    /// `bad_certificate`, or `certificate_required` if there are none.
    pub(crate) fn alert_of_refusal(&self) -> TlsAlertCode {
        match self.certificate {
            Some(_) => TlsAlertCode::BAD_CERTIFICATE,
            None => TlsAlertCode::CERTIFICATE_REQUIRED,
        }
    }

    /// Calls `tell` with what belongs to the event. Its pointers are good for the call.
    pub(crate) fn tell<R>(&mut self, tell: impl FnOnce(PeerCertificateReceived) -> R) -> R {
        let mut certificate = self.certificate.as_mut().map(buffer);
        let mut chain = self.chain.as_mut().map(buffer);
        tell(PeerCertificateReceived {
            certificate: pointer(&mut certificate),
            // MsQuic sets bits here on Windows only.
            deferred_error_flags: 0,
            deferred_status: self.deferred_status,
            chain: pointer(&mut chain),
        })
    }
}

fn buffer(bytes: &mut Vec<u8>) -> Buffer {
    // Certificates have passed through TLS, whose messages are shorter.
    Buffer { length: u32::try_from(bytes.len()).unwrap_or(0), buffer: bytes.as_mut_ptr() }
}

fn pointer(buffer: &mut Option<Buffer>) -> *mut c_void {
    buffer.as_mut().map_or(ptr::null_mut(), |buffer| ptr::from_mut(buffer).cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[u8] = include_bytes!("testdata/own.der");
    const AUTHORITY: &[u8] = include_bytes!("testdata/authority.der");

    /// What a program reads behind a pointer of the event.
    ///
    /// # Safety
    /// The pointer must be null or lead to a buffer.
    unsafe fn read(pointer: *mut c_void) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { pointer.cast::<Buffer>().as_ref() }?;
        // SAFETY: a buffer leads to as many bytes as it says.
        Some(unsafe { std::slice::from_raw_parts(buffer.buffer, buffer.length as usize) }.to_vec())
    }

    #[test]
    fn the_event_leads_to_buffers() {
        let mut peer = PeerCertificate::new(&[OWN.into(), AUTHORITY.into()], Status::CERT_EXPIRED);
        peer.tell(|event| {
            assert_eq!((event.deferred_error_flags, event.deferred_status), (0, Status::CERT_EXPIRED));
            // SAFETY: during the call they lead to buffers.
            let (certificate, chain) = unsafe { (read(event.certificate), read(event.chain)) };
            assert_eq!(certificate.unwrap(), OWN);
            assert_eq!(chain.unwrap(), include_bytes!("testdata/chain.p7"));
        });
        assert_eq!(peer.alert_of_refusal(), TlsAlertCode::BAD_CERTIFICATE);
    }

    #[test]
    fn without_a_certificate_both_are_null() {
        let mut peer = PeerCertificate::new(&[], Status::CERT_NO_CERT);
        peer.tell(|event| {
            assert!(event.certificate.is_null() && event.chain.is_null());
            assert_eq!(event.deferred_status, Status::CERT_NO_CERT);
        });
        assert_eq!(peer.alert_of_refusal(), TlsAlertCode::CERTIFICATE_REQUIRED);
    }
}
