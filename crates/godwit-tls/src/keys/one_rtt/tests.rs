#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::deterministic;
use crate::keys::from_tls;
use crate::provider::FoundPacketKey;
use godwit_wire::version::{V1, V2};

const PTO: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// The 1-RTT keys of both ends of a handshake.
fn established(version: u32) -> [Box<OneRtt>; 2] {
    from_tls(crate::provider().cipher_suites.first().copied(), || handshake(version))
}

fn handshake(version: u32) -> [Box<OneRtt>; 2] {
    use rustls::quic::{ClientConnection, KeyChange, ServerConnection};
    deterministic::seed(1);
    let quic = crate::keys::tls_version(version).unwrap();
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(deterministic::client_config(&[b"hq"]), quic, name, vec![]).unwrap();
    let server = ServerConnection::new(deterministic::server_config(&[b"hq"]), quic, vec![]).unwrap();
    let mut ends = [rustls::quic::Connection::from(client), server.into()];
    let mut keys = [None, None];
    for flight in 0..3 {
        let (from, to) = (flight % 2, 1 - flight % 2);
        loop {
            let mut data = Vec::new();
            let change = ends[from].write_hs(&mut data);
            ends[to].read_hs(&data).unwrap();
            match change {
                Some(KeyChange::OneRtt { keys: now, next }) => {
                    keys[from] = Some(Box::new(OneRtt::new(now, next, None)))
                }
                Some(KeyChange::Handshake { keys }) => drop(LevelKeys::new(keys)),
                None if data.is_empty() => break,
                None => {}
            }
        }
    }
    keys.map(Option::unwrap)
}

fn pair(version: u32) -> [Box<OneRtt>; 2] {
    let mut pair = established(version);
    pair.iter_mut().for_each(|end| end.on_confirmed());
    pair
}

/// A packet of one byte in the sender's present phase.
fn seal(from: &mut OneRtt, now: Time, pn: u64) -> Vec<u8> {
    let phase = from.phase_to_send(now);
    let mut packet = vec![0x40 | u8::from(phase) << 2, 0x01];
    packet.extend_from_slice(&[0; 16]);
    let (header, body) = packet.split_at_mut(1);
    from.seal(0, pn, header, body).unwrap();
    packet
}

fn open(to: &mut OneRtt, now: Time, pn: u64, packet: &[u8]) -> Result<Option<KeysUsed>, WireError> {
    let mut packet = packet.to_vec();
    let (header, body) = packet.split_at_mut(1);
    let opened = to.open((now, PTO), 0, pn, header, body)?;
    Ok(opened.map(|opened| {
        assert_eq!((opened.len, body[0]), (1, 0x01));
        opened.keys
    }))
}

/// Sends one packet and its acknowledgement.
fn round(a: &mut OneRtt, b: &mut OneRtt, now: Time, pn: u64) -> [Option<KeysUsed>; 2] {
    let packet = seal(a, now, pn);
    let there = open(b, now, pn, &packet).unwrap();
    let ack = seal(b, now, pn);
    let back = open(a, now, pn, &ack).unwrap();
    a.on_ack_received(pn, back.unwrap()).unwrap();
    [there, back]
}

#[test]
fn keys_are_updated_again_and_again() {
    for version in [V1, V2] {
        let [mut a, mut b] = pair(version);
        assert_eq!(round(&mut a, &mut b, at(0), 0), [Some(KeysUsed::Current); 2]);
        for update in 1..6_u64 {
            let now = at(update * 1000);
            assert!(a.initiate_update(now));
            assert_eq!(a.phase_bit(), update % 2 == 1);
            let used = round(&mut a, &mut b, now, update * 10);
            assert_eq!(used, [Some(KeysUsed::Updated), Some(KeysUsed::Current)]);
            assert_eq!((a.updates(), b.updates()), (update, update));
        }
    }
}

#[test]
fn either_end_may_begin_and_both_may_at_once() {
    let [mut a, mut b] = pair(V1);
    round(&mut a, &mut b, at(0), 0);
    round(&mut b, &mut a, at(0), 1);
    assert!(a.initiate_update(at(1)) && b.initiate_update(at(1)));
    assert_eq!(round(&mut a, &mut b, at(2), 2), [Some(KeysUsed::Current); 2]);
    assert_eq!((a.updates(), b.updates()), (1, 1));
}

#[test]
fn an_update_waits_for_confirmation_acknowledgement_and_the_old_key() {
    let [mut a, mut b] = established(V1);
    round(&mut a, &mut b, at(0), 0);
    assert!(!a.initiate_update(at(0)), "not confirmed");
    a.on_confirmed();
    assert!(a.initiate_update(at(0)));
    assert!(!a.initiate_update(at(0)), "nothing acknowledged in this phase");
    round(&mut a, &mut b, at(0), 1);
    assert!(!a.initiate_update(at(299)), "the old key is still there");
    assert!(a.initiate_update(at(300)));
}

#[test]
fn late_packets_of_the_phase_before_are_read_for_three_ptos() {
    let [mut a, mut b] = pair(V1);
    round(&mut a, &mut b, at(0), 0);
    let late: Vec<_> = (1..4).map(|pn| seal(&mut a, at(0), pn)).collect();
    let b_late = seal(&mut b, at(0), 1);
    assert!(a.initiate_update(at(0)));
    // The peer has not heard of the update: its packets come under the old keys, however late.
    assert_eq!(open(&mut a, at(5000), 1, &b_late), Ok(Some(KeysUsed::Previous)));
    let updated = seal(&mut a, at(0), 4);
    assert_eq!(open(&mut b, at(1000), 4, &updated), Ok(Some(KeysUsed::Updated)));
    assert_eq!(open(&mut b, at(1000), 1, &late[0]), Ok(Some(KeysUsed::Previous)));
    assert_eq!(open(&mut b, at(1299), 2, &late[1]), Ok(Some(KeysUsed::Previous)));
    assert_eq!(open(&mut b, at(1300), 3, &late[2]), Ok(None));
    assert_eq!(b.forged, 0, "a late packet is no forgery");
}

#[test]
fn a_forged_phase_bit_changes_nothing() {
    let [mut a, mut b] = pair(V1);
    let mut packet = seal(&mut a, at(0), 0);
    packet[0] ^= KEY_PHASE_BIT;
    assert_eq!(open(&mut b, at(0), 0, &packet), Ok(None));
    assert_eq!((b.updates(), b.forged), (0, 1));
    packet[0] ^= KEY_PHASE_BIT;
    assert_eq!(open(&mut b, at(0), 0, &packet), Ok(Some(KeysUsed::Current)));
}

#[test]
fn two_updates_without_waiting_are_an_error() {
    let [mut a, mut b] = pair(V1);
    round(&mut a, &mut b, at(0), 0);
    a.advance();
    let first = seal(&mut a, at(0), 1);
    a.advance();
    let second = seal(&mut a, at(0), 2);
    assert_eq!(open(&mut b, at(0), 1, &first), Ok(Some(KeysUsed::Updated)));
    let error = open(&mut b, at(0), 2, &second).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn acknowledging_an_update_under_old_keys_is_an_error() {
    let [mut a, mut b] = pair(V1);
    round(&mut a, &mut b, at(0), 0);
    assert!(a.initiate_update(at(0)));
    seal(&mut a, at(0), 7);
    assert_eq!(a.on_ack_received(6, KeysUsed::Previous), Ok(()));
    let error = a.on_ack_received(7, KeysUsed::Previous).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::KEY_UPDATE_ERROR);
    assert_eq!(a.on_ack_received(7, KeysUsed::Current), Ok(()));
}

#[test]
fn keys_are_updated_after_so_many_packets() {
    let [mut a, mut b] = pair(V1);
    a.set_update_after(Some(4));
    for pn in 0..20 {
        round(&mut a, &mut b, at(pn * 1000), pn);
    }
    assert_eq!((a.updates(), b.updates()), (4, 4));
}

#[test]
fn the_limits_of_the_aead_end_the_connection() {
    let [mut a, mut b] = pair(V1);
    assert_eq!(a.update_after, 1 << 22);
    a.phase.sealed = (1 << 23) - CLOSING_PACKETS - 1;
    // Due, but nothing has been acknowledged: the last packet that may be sealed, and then no more.
    let packet = seal(&mut a, at(0), 0);
    let error = a.seal(0, 1, &[0x40], &mut [0; 17]).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::AEAD_LIMIT_REACHED);
    // But for saying so.
    a.on_closing();
    for pn in 0..CLOSING_PACKETS {
        a.seal(0, 1 + pn, &[0x40], &mut [0; 17]).unwrap();
    }
    assert!(a.is_exhausted() && a.seal(0, 100, &[0x40], &mut [0; 17]).is_err());
    b.forged = (1 << 52) - 2;
    let mut forged = packet.clone();
    forged[3] ^= 1;
    assert_eq!(open(&mut b, at(0), 0, &forged), Ok(None));
    let error = open(&mut b, at(0), 0, &forged).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::AEAD_LIMIT_REACHED);
}

#[test]
fn keys_that_were_forgotten_are_the_same_and_are_updated_as_before() {
    for established in [established, handshake] {
        let [mut a, mut b] = established(V1);
        a.on_confirmed();
        for update in 0..4_u64 {
            for end in [&mut a, &mut b] {
                end.forget(at(update * 1000));
            }
            let now = at(update * 1000);
            assert!(update == 0 || a.initiate_update(now));
            a.forget(now);
            round(&mut a, &mut b, now, update * 10);
            b.forget(now);
            assert_eq!(round(&mut a, &mut b, now, update * 10 + 1), [Some(KeysUsed::Current); 2]);
        }
        assert_eq!((a.updates(), b.updates()), (3, 3));
    }
}

#[test]
fn what_a_packet_makes_ready_does_not_tell_its_key_phase_bit() {
    let [_, mut b] = pair(V1);
    for phase in [0, 4] {
        b.forget(at(0));
        let ready = |key: &Opener| matches!(&key.key, FoundPacketKey::Ours(key) if key.is_prepared());
        assert!(!ready(&b.opener) && !ready(&b.next));
        assert_eq!(open(&mut b, at(0), 0, &[0x40 | phase; 30]).unwrap(), None, "a forged packet");
        assert!(ready(&b.opener) && ready(&b.next));
    }
}
