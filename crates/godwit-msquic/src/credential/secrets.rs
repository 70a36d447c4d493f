//! A connection's secrets for programs that decrypt what was recorded (the parameter `QUIC_PARAM_CONN_TLS_SECRETS`).
//!
//! The application gives a place of its own, and they are written there as TLS derives them. rustls hands them to the key
//! log of its settings, which many connections share: so a connection whose secrets are wanted gets settings of its own,
//! which differ in that and share all else (sessions, tickets, certificates). No connection can be taken for another
//! then.
//!
//! Invariant: nothing is written once all is there (MsQuic lets go of the place then, and so may the application), nor
//! after the [`SecretsWriter`] is gone.

use crate::abi::TlsSecrets;
use rustls::{ClientConfig, KeyLog, ServerConfig};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes the secrets of one connection; it belongs to the connection, and ends with it at the latest.
#[derive(Debug)]
pub(crate) struct SecretsWriter(Arc<SecretsPlace>);

/// Where they go, until nothing more is to be written.
struct SecretsPlace(Mutex<Option<NonNull<TlsSecrets>>>);

// SAFETY: where the pointer leads is touched under the lock alone, and whoever gave it promised that this may happen on
// any thread.
unsafe impl Send for SecretsPlace {}
// SAFETY: as above.
unsafe impl Sync for SecretsPlace {}

impl SecretsWriter {
    /// Begins with an empty place.
    ///
    /// # Safety
    /// Until the writer is dropped, or all secrets are there, the place must be there and nobody else may touch it while
    /// something is done for the connection, on whatever thread that is.
    pub(crate) unsafe fn new(to: NonNull<TlsSecrets>) -> Self {
        // SAFETY: the caller's promise; all of its members are bytes, which may be zero.
        unsafe { to.write_bytes(0, 1) };
        SecretsWriter(Arc::new(SecretsPlace(Mutex::new(Some(to)))))
    }

    /// A client's settings that are as `tls`, for the one connection.
    pub(crate) fn client(&self, tls: &ClientConfig) -> Arc<ClientConfig> {
        let mut tls = tls.clone();
        tls.key_log = self.before(tls.key_log);
        Arc::new(tls)
    }

    /// A server's settings that are as `tls`, for the one connection.
    pub(crate) fn server(&self, tls: &ServerConfig) -> Arc<ServerConfig> {
        let mut tls = tls.clone();
        tls.key_log = self.before(tls.key_log);
        Arc::new(tls)
    }

    fn before(&self, next: Arc<dyn KeyLog>) -> Arc<dyn KeyLog> {
        Arc::new(Listener { place: Arc::clone(&self.0), next })
    }
}

impl Drop for SecretsWriter {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl SecretsPlace {
    fn lock(&self) -> MutexGuard<'_, Option<NonNull<TlsSecrets>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut place = self.lock();
        let Some(to) = place.as_mut() else { return };
        // SAFETY: the place is there, and nobody else touches it now, by the promise of who gave it.
        let secrets = unsafe { to.as_mut() };
        if !put(secrets, label, secret) {
            return;
        }
        copy(&mut secrets.client_random, client_random);
        *secrets = secrets.with_client_random(true);
        if secrets.has_client_traffic_secret0() && secrets.has_server_traffic_secret0() {
            *place = None;
        }
    }
}

/// Puts a secret in its place, if it has one.
fn put(secrets: &mut TlsSecrets, label: &str, secret: &[u8]) -> bool {
    let (to, marked): (_, fn(TlsSecrets, bool) -> TlsSecrets) = match label {
        "CLIENT_EARLY_TRAFFIC_SECRET" => {
            (&mut secrets.client_early_traffic_secret, TlsSecrets::with_client_early_traffic_secret)
        }
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => {
            (&mut secrets.client_handshake_traffic_secret, TlsSecrets::with_client_handshake_traffic_secret)
        }
        "SERVER_HANDSHAKE_TRAFFIC_SECRET" => {
            (&mut secrets.server_handshake_traffic_secret, TlsSecrets::with_server_handshake_traffic_secret)
        }
        "CLIENT_TRAFFIC_SECRET_0" => {
            (&mut secrets.client_traffic_secret0, TlsSecrets::with_client_traffic_secret0)
        }
        "SERVER_TRAFFIC_SECRET_0" => {
            (&mut secrets.server_traffic_secret0, TlsSecrets::with_server_traffic_secret0)
        }
        _ => return false,
    };
    copy(to, secret);
    secrets.secret_length = u8::try_from(secret.len()).unwrap_or(0);
    *secrets = marked(*secrets, true);
    true
}

fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// A key log before another one.
#[derive(Debug)]
struct Listener {
    place: Arc<SecretsPlace>,
    next: Arc<dyn KeyLog>,
}

impl KeyLog for Listener {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.place.write(label, client_random, secret);
        if self.next.will_log(label) {
            self.next.log(label, client_random, secret);
        }
    }
}

impl fmt::Debug for SecretsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsPlace(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::CredentialFlags;
    use crate::credential::testing::{ALPN, Authority, More, Wanted, client, shake_with};
    use godwit_tls::secret_tap::{tapped, tapped_client};

    fn empty() -> Box<TlsSecrets> {
        Box::new(TlsSecrets {
            secret_length: 9,
            is_set: 9,
            client_random: [9; 32],
            client_early_traffic_secret: [9; 64],
            client_handshake_traffic_secret: [9; 64],
            server_handshake_traffic_secret: [9; 64],
            client_traffic_secret0: [9; 64],
            server_traffic_secret0: [9; 64],
        })
    }

    fn writer(to: &mut TlsSecrets) -> SecretsWriter {
        // SAFETY: the tests keep the place, and touch it between calls alone.
        unsafe { SecretsWriter::new(NonNull::from(to)) }
    }

    #[test]
    fn both_ends_write_the_same_secrets() {
        let any = CredentialFlags::NO_CERTIFICATE_VALIDATION;
        let server = Authority::new().issue(&Wanted::default()).load(any, &More::default()).unwrap();
        let server_tls = server.server_tls(&[ALPN.to_vec()], false).unwrap();
        let client_tls = client(any, &More::default()).client_tls(&[ALPN.to_vec()], false).unwrap();
        let (mut of_client, mut of_server) = (empty(), empty());
        let (client_writer, server_writer) = (writer(&mut of_client), writer(&mut of_server));
        // The transport puts a tap of its own before the key log.
        let client_tls = tapped_client(ClientConfig::clone(&client_writer.client(&client_tls)));
        let server_tls = tapped(&server_writer.server(&server_tls));
        shake_with(Arc::new(client_tls), server_tls, "localhost").done();
        drop((client_writer, server_writer));
        for secrets in [&of_client, &of_server] {
            assert_eq!(secrets.is_set, 0b11_1101);
            // The suite that is preferred has SHA-384.
            assert_eq!(secrets.secret_length, 48);
            assert_eq!(secrets.client_early_traffic_secret, [0; 64]);
            assert_ne!(secrets.client_random, [0; 32]);
        }
        assert_eq!(of_client.client_random, of_server.client_random);
        assert_eq!(of_client.client_handshake_traffic_secret, of_server.client_handshake_traffic_secret);
        assert_eq!(of_client.server_handshake_traffic_secret, of_server.server_handshake_traffic_secret);
        assert_eq!(of_client.client_traffic_secret0, of_server.client_traffic_secret0);
        assert_eq!(of_client.server_traffic_secret0, of_server.server_traffic_secret0);
        assert_ne!(of_client.client_traffic_secret0, of_client.server_traffic_secret0);
    }

    #[test]
    fn nothing_is_written_when_the_writer_is_gone() {
        let mut secrets = empty();
        let writer = writer(&mut secrets);
        let place = Arc::clone(&writer.0);
        place.write("CLIENT_EARLY_TRAFFIC_SECRET", &[1; 32], &[2; 32]);
        drop(writer);
        place.write("CLIENT_TRAFFIC_SECRET_0", &[1; 32], &[3; 32]);
        assert_eq!((secrets.is_set, secrets.secret_length), (0b11, 32));
        assert_eq!(secrets.client_early_traffic_secret[..33], [[2; 32].as_slice(), &[0]].concat());
        assert_eq!((secrets.client_random, secrets.client_traffic_secret0), ([1; 32], [0; 64]));
    }

    #[test]
    fn nothing_is_written_when_all_is_there() {
        let mut secrets = empty();
        let writer = writer(&mut secrets);
        for label in ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0", "CLIENT_EARLY_TRAFFIC_SECRET"] {
            writer.0.write(label, &[1; 32], &[2; 32]);
        }
        assert!(writer.0.lock().is_none());
        assert_eq!((secrets.is_set, secrets.client_early_traffic_secret), (0b11_0001, [0; 64]));
    }

    #[test]
    fn other_secrets_have_no_place_here_and_are_handed_on() {
        #[derive(Debug, Default)]
        struct Heard(Mutex<Vec<String>>);
        impl KeyLog for Heard {
            fn log(&self, label: &str, _: &[u8], _: &[u8]) {
                self.0.lock().unwrap().push(label.to_owned());
            }
        }
        let mut secrets = empty();
        let (writer, heard) = (writer(&mut secrets), Arc::new(Heard::default()));
        writer.before(heard.clone()).log("EXPORTER_SECRET", &[1; 32], &[2; 32]);
        assert_eq!(*heard.0.lock().unwrap(), ["EXPORTER_SECRET"]);
        drop(writer);
        assert_eq!((secrets.is_set, secrets.client_random), (0, [0; 32]));
    }
}
