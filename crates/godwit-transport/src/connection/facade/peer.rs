//! Who the peer is, what the handshake agreed on, and what is left for the next connection.

use super::Connection;
use crate::connection::approval::ACCESS_DENIED;
use crate::resumption::EarlyDataStatus;
use bytes::Bytes;
use godwit_base::Time;
use godwit_tls::ExportError;
use godwit_tls::resumption::NewSession;
use godwit_wire::ConnectionId;
use godwit_wire::transport_parameters::Timestamps;

impl Connection {
    /// The application protocol that was negotiated (ALPN): at a client known when the handshake is complete, at a
    /// server from when the ClientHello has been read.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.machine.parts.handshake.alpn()
    }

    /// The Destination Connection ID of the client's very first packet, before a Retry: what both ends of the connection, and
    /// traces of it, can be found by.
    pub const fn original_dcid(&self) -> &ConnectionId {
        &self.machine.negotiation.original_dcid
    }

    /// At a server: the name the client asked for (SNI), from when the ClientHello has been read.
    pub fn server_name(&self) -> Option<&str> {
        self.machine.parts.handshake.server_name()
    }

    /// The peer's certificates in DER, its own first; none before the handshake is complete.
    pub fn peer_certificates(&self) -> &[rustls::pki_types::CertificateDer<'static>] {
        self.machine.parts.handshake.data().map_or(&[], |data| &data.peer_certificates)
    }

    /// The cipher suite that protects packets, once the handshake is complete.
    pub fn cipher_suite(&self) -> Option<rustls::CipherSuite> {
        self.machine.parts.handshake.data()?.cipher_suite
    }

    /// Whether 1-RTT packets are plaintext, because both ends have asked for that
    /// ([`TransportConfig::danger_without_encryption`](crate::TransportConfig::danger_without_encryption)). False before the
    /// handshake is complete.
    pub const fn is_unencrypted(&self) -> bool {
        self.machine.spaces.data.unencrypted.is_some()
    }

    /// The group of the key exchange, once the handshake is complete.
    pub fn key_exchange_group(&self) -> Option<rustls::NamedGroup> {
        self.machine.parts.handshake.data()?.group
    }

    /// Whether the handshake resumed a former session. False before it is complete.
    pub fn is_resumed(&self) -> bool {
        self.machine.parts.handshake.data().is_some_and(|data| data.resumed)
    }

    /// At a server that withholds them: the next session ticket that TLS has made, once the handshake is complete. What it
    /// has as a ticket is by what the store of sessions was told of it.
    pub fn next_withheld_ticket(&mut self) -> Option<NewSession> {
        self.machine.parts.handshake.next_withheld()
    }

    /// Sends the client a session ticket that was withheld, with a ticket and a lifetime that may be others; whether it
    /// permits 0-RTT is said by `early`. False if it is too long, or the handshake is not complete.
    pub fn send_ticket(&mut self, ticket: &NewSession, early: bool) -> bool {
        self.machine.parts.handshake.send_ticket(ticket, early)
    }

    /// Fills `output` with key material that both ends of this connection can derive and nobody else (RFC 8446
    /// section 7.5). `label` says for what, at most 249 bytes; `context` may be empty. Different for each label,
    /// context and length.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExportError> {
        self.machine.parts.handshake.export_keying_material(label, context, output)
    }

    /// Why TLS failed, in more words than the peer is told.
    pub fn tls_failure(&self) -> Option<&rustls::Error> {
        self.machine.parts.handshake.failure()
    }

    /// True from the start until the application has approved of the peer, if it wants to be asked.
    pub fn wants_approval(&self) -> bool {
        self.machine.wants_approval()
    }

    /// The application approves of the peer: the connection is what it would have been without the question.
    /// Nothing happens if that was not asked.
    pub fn approve(&mut self, now: Time) {
        self.machine.approve(now)
    }

    /// The application wants nothing to do with the peer, which is told so with the alert `access_denied`. Nothing
    /// happens if it was not asked.
    pub fn refuse_peer(&mut self, now: Time) {
        self.refuse_peer_with(now, ACCESS_DENIED)
    }

    /// As [`Connection::refuse_peer`], with another TLS alert (RFC 8446 section 6.2), such as 42 (`bad_certificate`), 45
    /// (`certificate_expired`) or 48 (`unknown_ca`).
    pub fn refuse_peer_with(&mut self, now: Time, alert: u8) {
        self.machine.refuse_peer(now, alert)
    }

    /// Whether this end sends the peer its time with acknowledgements, and receives the peer's
    /// ([`TransportConfig::timestamps`](crate::TransportConfig::timestamps)): neither before the peer's transport parameters are
    /// known, which they are when the handshake is complete.
    pub fn timestamps(&self) -> Timestamps {
        self.machine.parts.clocks.negotiated()
    }

    /// What became of 0-RTT on this connection. At a client it is known when the handshake is complete; at a
    /// server from the start.
    pub fn early_data_status(&self) -> EarlyDataStatus {
        self.machine.early.status()
    }

    /// At a client with a session store: what former connections to the server in this network have left.
    pub fn remembered(&self) -> Option<godwit_tls::resumption::Remembered> {
        self.machine.negotiation.memory.as_ref()?.remembered()
    }

    /// Has `data`, at most 4096 bytes, remembered for later connections to the same server, such as the settings
    /// that their 0-RTT requests have to keep to. Without effect if there is no session store.
    pub fn remember_application_data(&self, data: &Bytes) {
        if let Some(memory) = &self.machine.negotiation.memory {
            memory.put_application_data(data);
        }
    }
}
