#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::keys::LevelKeys;
use crate::provider;
use godwit_base::{Rng, SeededRng};
use proptest::prelude::*;
use rustls::crypto::CryptoProvider;
use rustls::quic::Version;

/// One key per cipher suite of a provider.
fn keys(provider: &CryptoProvider, side: rustls::Side) -> Vec<LevelKeys> {
    let suites = provider.cipher_suites.iter().filter_map(|suite| suite.tls13()?.quic_suite());
    let mut keys: Vec<_> = suites
        .map(|suite| (format!("{:?}", suite.suite.common.suite), suite.keys(b"dcid", side, Version::V1)))
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    keys.into_iter().map(|(_, keys)| LevelKeys::new(keys)).collect()
}

/// As [`keys`], of our provider, the way they come out of TLS.
fn laid_aside(side: rustls::Side) -> Vec<LevelKeys> {
    let suites = provider::provider().cipher_suites.clone();
    let suites = suites.iter().filter_map(|suite| suite.tls13()?.quic_suite());
    suites
        .map(|suite| provider::laying_aside(|| LevelKeys::new(suite.keys(b"dcid", side, Version::V1))))
        .collect()
}

/// `count` packets of changing kinds with random bytes, back to back in one buffer.
fn packets(count: usize, seed: u64) -> (Vec<PacketSpan>, Vec<u8>) {
    let (mut spans, mut buffer, mut rng) = (Vec::new(), Vec::new(), SeededRng::new(seed));
    for _ in 0..count {
        let mut bytes = vec![0; 30 + rng.below(50) as usize];
        rng.fill(&mut bytes);
        let (first, pn_len) = (buffer.len(), usize::from(bytes[0] & 3) + 1);
        spans.push(PacketSpan { first, pn_offset: first + 1 + rng.below(9) as usize, pn_len });
        buffer.extend_from_slice(&bytes);
    }
    (spans, buffer)
}

#[test]
fn a_batch_is_the_same_as_one_by_one_and_can_be_undone() {
    let foreign = provider::rustls_provider();
    let ours = keys(&provider::provider(), rustls::Side::Client);
    let theirs = keys(&foreign, rustls::Side::Client);
    let openers = keys(&foreign, rustls::Side::Server);
    assert_eq!((ours.len(), theirs.len(), openers.len()), (3, 3, 3));
    for ((ours, theirs), opener) in ours.iter().zip(&theirs).zip(&openers) {
        for count in (0..12).chain([63, 64, 65, 128, 200]) {
            let (spans, plain) = packets(count, count as u64);
            let (mut together, mut single, mut refused) = (plain.clone(), plain.clone(), plain.clone());
            ours.header_sealer.mask_batch(&spans, &mut together).unwrap();
            theirs.header_sealer.mask_batch(&spans, &mut refused).unwrap();
            for span in &spans {
                ours.header_sealer.mask(*span, &mut single).unwrap();
            }
            assert!(together == single && together == refused, "{count} packets");
            for span in &spans {
                let packet = &mut together[span.first..];
                let (_, number) = opener.header_opener.unmask(packet, span.pn_offset - span.first).unwrap();
                assert_eq!(number.len(), span.pn_len);
            }
            assert_eq!(together, plain);
        }
        assert!(ours.header_sealer.batches.load(Ordering::Relaxed));
        assert!(!theirs.header_sealer.batches.load(Ordering::Relaxed), "another provider refuses");
    }
}

#[test]
fn packets_outside_the_buffer_are_refused() {
    let keys = keys(&provider::provider(), rustls::Side::Client).remove(0);
    let span = |pn_offset| PacketSpan { first: 0, pn_offset, pn_len: 4 };
    let mut buffer = [0; 40];
    assert_eq!(keys.header_sealer.mask_batch(&[span(20)], &mut buffer), Ok(()));
    assert_eq!(keys.header_sealer.mask_batch(&[span(21)], &mut buffer), Err(SealFailed));
    assert_eq!(keys.header_sealer.mask_batch(&[span(1), span(2), span(21)], &mut buffer), Err(SealFailed));
    assert_eq!(keys.header_sealer.mask_batch(&[span(usize::MAX)], &mut buffer), Err(SealFailed));
}

#[test]
fn another_provider_makes_masks_when_the_packets_turns_come() {
    let run = [7; 64 * 50];
    for keys in keys(&provider::rustls_provider(), rustls::Side::Client) {
        assert!(keys.header_opener.masks_ahead(&run, 50, 9).is_none());
    }
}

proptest! {
    #[test]
    fn masks_made_ahead_are_those_made_one_by_one(
        mut run in prop::collection::vec(any::<u8>(), 0..4000),
        stride in 1_usize..120,
        pn_offset in 0_usize..30,
    ) {
        for keys in laid_aside(rustls::Side::Server) {
            let ahead = keys.header_opener.masks_ahead(&run, stride, pn_offset).unwrap();
            for (index, packet) in run.chunks_mut(stride).enumerate() {
                let mask = ahead.of(index);
                prop_assert_eq!(mask.is_some(), index < MasksAhead::MOST);
                let mut single = packet.to_vec();
                let found = keys.header_opener.unmask(&mut single, pn_offset);
                let found_ahead = keys.header_opener.unmask_ahead(packet, pn_offset, mask);
                prop_assert_eq!(found_ahead, found);
                prop_assert_eq!(&*packet, single.as_slice());
            }
        }
    }

    #[test]
    fn arbitrary_packets_do_no_harm(mut packet in prop::collection::vec(any::<u8>(), 0..60), offset in 0usize..70) {
        let keys = keys(&provider::provider(), rustls::Side::Client).remove(0);
        let long_enough = offset > 0 && packet.len() >= offset + 20;
        prop_assert_eq!(keys.header_opener.unmask(&mut packet, offset).is_some(), long_enough);
    }
}
