//! Moving from one version to another during the handshake (RFC 9368, RFC 9369 section 4).
//!
//! A server that prefers another version than the client began with, and finds it among those the client
//! offers, answers in that one. The client sees it in the first packet of another version, and follows. Or the
//! server does not know the client's version at all and says so; then the client begins again with one they
//! share. Both ends compare afterwards what they chose with what was really offered, so that nobody in between
//! can choose for them.

use super::Machine;
use super::boundary::ClientArgs;
use super::negotiation;
use crate::error::ConnectionError;
use crate::handshake::Handshake;
use crate::path::PathId;
use crate::{ConnectError, WireError};
use godwit_base::Time;
use godwit_recovery::SpaceId;
use godwit_tls::keys::{self, LevelKeys};
use godwit_wire::header;
use godwit_wire::transport_parameters::{VersionInformation, VersionList};
use godwit_wire::version::{V1, are_compatible, is_known, is_reserved};
use godwit_wire::{ConnectionId, Side, TransportErrorCode};
use std::sync::Arc;

/// What is remembered until the version is settled.
#[derive(Debug)]
pub(super) struct Versions {
    /// The version of the client's first packets, after a Version Negotiation packet those of the second
    /// attempt.
    original: u32,
    /// What this end offers, in its order of preference.
    available: Box<[u32]>,
    /// A server that has moved still opens the client's Initial packets of the original version.
    original_keys: Option<Box<LevelKeys>>,
    /// What a client needs to begin again; gone once a server has been heard.
    restart: Option<Box<Restart>>,
    /// A client that began again because of a Version Negotiation packet.
    reacted: bool,
    /// A client that has read what TLS says in this version.
    settled: bool,
}

/// A client's first flight, to be made again.
#[derive(Debug)]
struct Restart {
    tls: Arc<rustls::ClientConfig>,
    /// Whether TLS is to read tickets as long as the connection lasts.
    late_tickets: bool,
    server_name: Box<str>,
    grease: u64,
    /// The Destination Connection ID of the second attempt: with that of the first, a server that has taken that
    /// one after all would not see a new connection.
    dcid: ConnectionId,
}

impl Versions {
    /// `grease` and `dcid` are random.
    pub(super) fn client(args: &ClientArgs<'_>, grease: u64, dcid: u64) -> Self {
        let dcid = ConnectionId::new(&dcid.to_be_bytes()).unwrap_or(args.initial_dcid);
        let restart = Restart {
            tls: args.config.tls.clone(),
            late_tickets: args.config.late_tickets,
            server_name: args.server_name.into(),
            grease,
            dcid,
        };
        Versions {
            original: args.version,
            available: offer(args.version, args.versions).as_slice().into(),
            original_keys: None,
            restart: Some(Box::new(restart)),
            reacted: false,
            settled: false,
        }
    }

    /// `original` is the version of the client's packets, `chosen` the one to go on with.
    pub(super) fn server(original: u32, chosen: u32, client_dcid: &ConnectionId, versions: &[u32]) -> Self {
        let moved = original != chosen;
        let keys = moved.then(|| keys::initial(original, client_dcid, Side::Server)).flatten();
        Versions {
            original,
            available: VersionList::new(versions.iter().copied()).as_slice().into(),
            original_keys: keys.map(Box::new),
            restart: None,
            reacted: false,
            settled: true,
        }
    }

    pub(super) const fn available(&self) -> &[u32] {
        &self.available
    }

    /// The keys for Initial packets of the version that a server has left, if it is this one.
    pub(super) fn original_keys(&self, version: u32) -> Option<&LevelKeys> {
        self.original_keys.as_deref().filter(|_| version == self.original)
    }

    /// Initial packets are over.
    pub(super) fn on_initial_discarded(&mut self) {
        self.original_keys = None;
        self.restart = None;
    }

    /// CRYPTO data has come in the present version: a client will follow to no other.
    pub(super) fn settle(&mut self) {
        self.settled = true;
        self.restart = None;
    }

    /// Compares what the peer says with what has happened (RFC 9368 section 4). `negotiated` is the version
    /// in use.
    pub(super) fn check(
        &self,
        side: Side,
        negotiated: u32,
        peer: Option<&VersionInformation>,
    ) -> Result<(), WireError> {
        let error = |reason| Err(WireError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason));
        let expected = if side == Side::Server { self.original } else { negotiated };
        let moved = self.reacted || negotiated != self.original;
        match peer {
            // Servers that know version 1 alone need not confirm it (RFC 9368 section 8).
            None if self.reacted && negotiated == V1 && self.original == V1 => Ok(()),
            None if side == Side::Client && moved => {
                error("the server does not confirm the change of version")
            }
            None => Ok(()),
            Some(peer) if peer.chosen != expected => error("the chosen version is not the one in use"),
            Some(peer) if side == Side::Client && self.reacted => {
                let offered = peer.available.as_slice();
                let of_server = |version: u32| offered.contains(&version) || version == negotiated;
                // The version of the second attempt is what counts: from there the server may have moved on.
                let mut best = self.available.iter().copied();
                let best = best.find(|version| of_server(*version));
                if offered.is_empty() || best.is_some_and(|best| best != self.original && best != negotiated)
                {
                    return error("somebody in between chose a version that is not the best in common");
                }
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }
}

/// The versions a client offers: those it speaks, and in any case the one it begins with, unless that stands for none.
pub(super) fn offer(begun: u32, versions: &[u32]) -> VersionList {
    let first = Some(begun).filter(|begun| !versions.contains(begun) && !is_reserved(*begun));
    VersionList::new(first.into_iter().chain(versions.iter().copied()))
}

/// The version with which a server answers a client that began with `original` and offers `offered`.
pub(crate) fn choose(original: u32, wanted: Option<u32>, offered: Option<&VersionInformation>) -> u32 {
    let agreed = |wanted: &u32| {
        let offered = offered.filter(|offered| offered.chosen == original);
        are_compatible(original, *wanted)
            && offered.is_some_and(|offered| offered.available.as_slice().contains(wanted))
    };
    wanted.filter(agreed).unwrap_or(original)
}

impl Machine {
    /// At a client: an Initial packet of another version. If it is authentic, and the version one that was
    /// offered, the connection goes on in that version.
    pub(super) fn follow_version(&mut self, version: u32, pn_offset: usize, packet: &[u8]) {
        let versions = &self.versions;
        let welcome = self.side == Side::Client && !versions.settled && versions.available.contains(&version);
        if !welcome {
            return;
        }
        let Some(keys) = keys::initial(version, &self.negotiation.initial_keys_cid(), self.side) else {
            return;
        };
        let expected = self.spaces.initial.as_ref().map(|initial| initial.space.acks.next_expected());
        if !is_authentic(&keys, expected.unwrap_or(0), pn_offset, &mut packet.to_vec()) {
            return;
        }
        if let Some(initial) = self.spaces.initial.as_deref_mut()
            && self.parts.handshake.move_to(version)
        {
            initial.keys = keys;
            self.version = version;
            if let Some(memory) = &self.negotiation.memory {
                memory.set_version(version);
            }
            self.versions.settle();
            self.observe_version();
        }
    }

    /// A Version Negotiation packet: believed only before anything else is heard, once, and only if it does
    /// not list the version that it refuses (RFC 9000 section 6.2). The client begins again with the best
    /// version in common, if there is one.
    pub(super) fn on_version_negotiation(
        &mut self,
        now: Time,
        dcid: ConnectionId,
        scid: ConnectionId,
        body: &[u8],
    ) {
        if !self.negotiation.awaits_versions(dcid, scid) {
            return;
        }
        self.negotiation.attempt.on_version_negotiation();
        if self.versions.reacted || header::versions(body).any(|version| version == self.version) {
            return;
        }
        let spoken = |version: &&u32| is_known(**version) && header::versions(body).any(|of| of == **version);
        let best = self.versions.available.iter().find(spoken).copied();
        let restart = self.versions.restart.take();
        match best.zip(restart) {
            Some((version, restart)) => {
                if self.start_over(now, version, &restart).is_err() {
                    self.abandon(ConnectionError::VersionMismatch);
                }
            }
            None => self.abandon(ConnectionError::VersionMismatch),
        }
    }

    /// Sends the first flight again in another version, as if the one before had not been.
    fn start_over(&mut self, now: Time, version: u32, restart: &Restart) -> Result<(), ConnectError> {
        self.negotiation.original_dcid = restart.dcid;
        self.parts.remote_cids.set_first(restart.dcid);
        let parameters = self.negotiation.parameters(&self.config, version, self.versions.available());
        let parameters = negotiation::encode(&parameters, restart.grease)?;
        self.early.stop();
        // A session belongs to the version in which it was begun (RFC 9369 section 5).
        let mut tls = rustls::ClientConfig::clone(&restart.tls);
        tls.enable_early_data = false;
        let tls = match &self.negotiation.memory {
            Some(memory) => {
                memory.set_version(version);
                memory.tls(&tls)
            }
            None => {
                tls.resumption = rustls::client::Resumption::disabled();
                tls
            }
        };
        let mut handshake = Handshake::client(tls, version, &restart.server_name, parameters)?;
        handshake.set_memory(self.negotiation.memory.clone());
        match &self.negotiation.memory {
            None => handshake.without_tickets(),
            Some(_) if restart.late_tickets => handshake.read_all_tickets(),
            Some(_) => {}
        }
        let keys = super::initial_keys(version, &self.negotiation.initial_keys_cid(), self.side)?;
        if let Some(initial) = self.spaces.initial.as_deref_mut() {
            // Nothing of the first attempt is acknowledged any more.
            initial.space.recovery.declare_all_lost(&mut self.paths.recovery(), now, &mut |_, _| {});
            initial.keys = keys;
        }
        // Nor are 0-RTT packets, which must not take the new flight's room.
        self.abandon_early(now);
        self.parts.handshake = handshake;
        self.version = version;
        let versions = &mut self.versions;
        (versions.original, versions.reacted) = (version, true);
        self.observe_version();
        self.observe_keys(SpaceId::Initial);
        Ok(())
    }
}

/// Whether these keys open a packet. Its bytes are worthless afterwards.
fn is_authentic(keys: &LevelKeys, expected: u64, pn_offset: usize, packet: &mut [u8]) -> bool {
    let Some((_, truncated)) = keys.header_opener.unmask(packet, pn_offset) else { return false };
    let number = truncated.expand(expected);
    let payload_at = pn_offset.saturating_add(truncated.len());
    let Some((header, payload)) = packet.split_at_mut_checked(payload_at) else { return false };
    keys.opener.open(PathId(0).nonce_id(), number, header, payload).is_some()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use godwit_wire::version::V2;

    fn information(chosen: u32, available: &[u32]) -> VersionInformation {
        VersionInformation { chosen, available: VersionList::new(available.iter().copied()) }
    }

    #[test]
    fn a_server_moves_only_to_what_the_client_offers() {
        let offer = information(V1, &[V1, V2]);
        assert_eq!(choose(V1, Some(V2), Some(&offer)), V2);
        assert_eq!(choose(V1, None, Some(&offer)), V1);
        assert_eq!(choose(V1, Some(V2), None), V1);
        assert_eq!(choose(V1, Some(V2), Some(&information(V1, &[V1]))), V1);
        assert_eq!(choose(V1, Some(V2), Some(&information(V2, &[V2]))), V1, "it lies about its version");
        assert_eq!(choose(V1, Some(7), Some(&information(V1, &[V1, 7]))), V1, "not spoken here");
    }

    #[test]
    fn downgrades_are_noticed() {
        let versions = |original, reacted| Versions {
            original,
            available: [V2, V1].into(),
            original_keys: None,
            restart: None,
            reacted,
            settled: true,
        };
        let both = information(V2, &[V1, V2]);
        let (client, server) = (Side::Client, Side::Server);
        assert!(versions(V1, false).check(client, V2, Some(&both)).is_ok());
        assert!(versions(V1, false).check(client, V1, None).is_ok());
        assert!(versions(V1, false).check(client, V1, Some(&both)).is_err());
        assert!(versions(V1, false).check(client, V2, None).is_err(), "moved without a word");
        assert!(versions(V1, false).check(server, V2, Some(&information(V1, &[V1]))).is_ok());
        assert!(versions(V1, false).check(server, V2, Some(&both)).is_err(), "the client began with another");
        assert!(versions(V1, true).check(client, V1, None).is_ok(), "a server that speaks version 1 alone");
        assert!(versions(V2, true).check(client, V2, None).is_err());
        assert!(versions(V2, true).check(client, V1, None).is_err());
        assert!(versions(V1, true).check(client, V1, Some(&information(V1, &[]))).is_err());
        assert!(versions(V1, true).check(client, V1, Some(&information(V1, &[V1]))).is_ok());
        let forged = versions(V1, true).check(client, V1, Some(&information(V1, &[V1, V2]))).unwrap_err();
        assert_eq!(forged.code, TransportErrorCode::VERSION_NEGOTIATION_ERROR);
    }
}
