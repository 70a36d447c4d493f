#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::keys::{OneRtt, Ratchet, Schedule, TAG_LEN};
use crate::secret_tap::Secret;
use godwit_base::Time;
use godwit_wire::version::V1;
use rustls::CipherSuite;
use std::sync::Arc;

const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];
const HEADER: usize = 11;
const LEN: usize = 1200;

fn keys(suite: CipherSuite) -> OneRtt {
    let schedule = Schedule::new(suite, V1).unwrap();
    let len = if suite == CipherSuite::TLS13_AES_256_GCM_SHA384 { 48 } else { 32 };
    let (local, remote) = (vec![1; len], vec![2; len]);
    let ratchet = Ratchet::new(schedule, Secret::new(&local), Secret::new(&remote));
    let mut keys = OneRtt::derived(schedule.level_keys(&local, &remote), ratchet);
    keys.on_confirmed();
    keys
}

/// A run of `count` packets, the first of which has this number, written and not protected.
fn written(keys: &mut OneRtt, first: u64, count: usize) -> (Vec<u8>, Vec<UnprotectedPacket>) {
    let mut run = vec![0; count * LEN];
    let mut packets = Vec::new();
    for (at, bytes) in run.chunks_mut(LEN).enumerate() {
        let number = first + at as u64;
        let phase = keys.phase_to_send(Time::ZERO);
        bytes[0] = 0x41 | u8::from(phase) << 2;
        bytes[9..HEADER].copy_from_slice(&(number as u16).to_be_bytes());
        bytes[HEADER..LEN - TAG_LEN].fill(at as u8);
        let span = PacketSpan { first: at * LEN, pn_offset: at * LEN + 9, pn_len: 2 };
        packets.push(UnprotectedPacket { span, len: LEN, path: 0, number });
    }
    (run, packets)
}

/// The same run, protected as it is written.
fn sealed_at_once(keys: &mut OneRtt, first: u64, count: usize) -> Vec<u8> {
    let (mut run, packets) = written(keys, first, count);
    for (packet, bytes) in packets.iter().zip(run.chunks_mut(LEN)) {
        let (header, payload) = bytes.split_at_mut(HEADER);
        keys.seal(0, packet.number, header, payload).unwrap();
    }
    let spans: Vec<_> = packets.iter().map(|packet| packet.span).collect();
    keys.header_sealer.mask_batch(&spans, &mut run).unwrap();
    run
}

#[test]
fn who_protects_packets_later_and_elsewhere_makes_the_same_of_them() {
    for suite in SUITES {
        let (mut one, mut other) = (keys(suite), keys(suite));
        let mut first = 0;
        for update in 0..3 {
            // More than one batch of header protection.
            let expected = sealed_at_once(&mut one, first, 70);
            let (run, packets) = written(&mut other, first, 70);
            packets.iter().for_each(|packet| other.begin_apart(packet.number));
            let (mut here, mut there) = (run.clone(), run);
            other.protect(&packets, &mut here).unwrap();
            assert!(here == expected, "{suite:?} {update}");
            let copied = Arc::clone(other.copied().unwrap());
            std::thread::spawn(move || {
                copied.protect(&packets, &mut there).unwrap();
                assert!(there == expected, "{suite:?} {update}");
            })
            .join()
            .unwrap();
            first += 70;
            // What was counted is the same as well: the update is permitted by the same acknowledgement.
            for keys in [&mut one, &mut other] {
                keys.on_ack_received(first - 1, crate::keys::KeysUsed::Current).unwrap();
                assert_eq!(keys.initiate_update(Time::ZERO), update == 0, "the next ones wait for the peer");
            }
            assert_eq!(one.updates(), other.updates());
        }
        // Keys that were given out before are of their own phase.
        other.forget(Time::ZERO);
        let (run, packets) = written(&mut other, first, 2);
        let mut run = run;
        other.copied().unwrap().protect(&packets, &mut run).unwrap();
        assert!(run == sealed_at_once(&mut one, first, 2), "forgotten and made anew");
    }
}

#[test]
fn packets_are_protected_later_only_if_no_update_can_come_between() {
    let mut keys = keys(SUITES[0]);
    keys.set_update_after(Some(100));
    for number in 0..37 {
        assert!(keys.can_protect_later(63));
        keys.begin_apart(number);
    }
    assert!(keys.can_protect_later(63) && !keys.can_protect_later(64));
    keys.begin_apart(37);
    assert!(!keys.can_protect_later(63));
    keys.pretend_sealed(u64::MAX);
    assert!(!keys.can_protect_later(1) && keys.is_exhausted());
}

#[test]
fn packets_that_are_not_in_the_buffer_are_not_protected() {
    let mut keys = keys(SUITES[0]);
    let (mut run, packets) = written(&mut keys, 0, 2);
    let copied = Arc::clone(keys.copied().unwrap());
    assert_eq!(copied.protect(&packets, &mut run[..2 * LEN - 1]), Err(SealFailed));
    let wrong = UnprotectedPacket { len: usize::MAX, ..packets[0] };
    assert_eq!(copied.protect(&[wrong], &mut run), Err(SealFailed));
    let wrong = UnprotectedPacket { span: PacketSpan { first: usize::MAX, ..packets[0].span }, ..packets[0] };
    assert_eq!(copied.protect(&[wrong], &mut run), Err(SealFailed));
}
