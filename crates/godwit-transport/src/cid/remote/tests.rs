#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

fn cid(n: u64) -> ConnectionId {
    ConnectionId::new(&n.to_be_bytes()).unwrap()
}

fn token(n: u64) -> ResetToken {
    ResetToken((u128::from(n) + 1).to_be_bytes())
}

fn announce(cids: &mut RemoteCids, sequence: u64, retire_prior_to: u64) -> Result<(), WireError> {
    cids.on_new_connection_id(sequence, retire_prior_to, cid(sequence), token(sequence))
}

fn cids(limit: u64, known: u64) -> RemoteCids {
    let mut cids = RemoteCids::new(cid(0), limit);
    for sequence in 1..=known {
        announce(&mut cids, sequence, 0).unwrap();
    }
    cids
}

fn written(cids: &mut RemoteCids) -> Vec<u64> {
    let (_, tokens, ()) = crate::packet::testing::payload(1200, |packet| cids.write_frames(packet));
    tokens.into_iter().map(|RetiredId(sequence)| sequence).collect()
}

#[test]
fn duplicates_are_ignored_and_contradictions_refused() {
    let mut cids = cids(4, 2);
    assert_eq!(announce(&mut cids, 1, 0), Ok(()));
    for (sequence, cid_of, token_of) in [(1, 9, 1), (1, 1, 9), (9, 1, 9), (9, 9, 1), (9, 0, 9)] {
        let error = cids.on_new_connection_id(sequence, 0, cid(cid_of), token(token_of)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(error.frame_type, 0x18);
    }
}

#[test]
fn no_more_ids_than_the_limit() {
    let mut cids = cids(3, 2);
    let error = announce(&mut cids, 3, 0).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
    let mut cids = self::cids(3, 2);
    assert_eq!(announce(&mut cids, 3, 1), Ok(()), "one goes as one comes");
    assert_eq!(cids.active(), &cid(1));
    assert_eq!(written(&mut cids), [0]);
}

#[test]
fn retirements_are_repeated_until_acknowledged() {
    let mut cids = cids(4, 3);
    assert!(cids.rotate() && cids.rotate());
    assert_eq!(cids.active(), &cid(2));
    assert_eq!(written(&mut cids), [0, 1]);
    assert!(!cids.wants_to_send());
    cids.repeat(RetiredId(1));
    cids.on_acked(RetiredId(0));
    cids.repeat(RetiredId(0));
    assert_eq!(written(&mut cids), [1]);
    cids.on_acked(RetiredId(1));
    assert_eq!(announce(&mut cids, 1, 0), Ok(()), "a late duplicate of a retired id");
    assert!(!cids.wants_to_send());
    assert!(cids.rotate());
    assert!(!cids.rotate(), "the last one stays");
    assert_eq!(cids.active(), &cid(3));
}

#[test]
fn an_id_that_comes_too_late_is_retired_once() {
    let mut cids = cids(4, 0);
    announce(&mut cids, 5, 5).unwrap();
    assert_eq!(cids.active(), &cid(5));
    announce(&mut cids, 3, 0).unwrap();
    announce(&mut cids, 3, 0).unwrap();
    assert_eq!(written(&mut cids), [0, 3]);
}

#[test]
fn a_flood_of_retirements_ends_the_connection() {
    let mut cids = cids(4, 0);
    let refused = (1..100).find_map(|n| announce(&mut cids, n, n).err().map(|error| (n, error.code)));
    let expected = RemoteCids::MAX_RETIRING as u64 + 1;
    assert_eq!(refused, Some((expected, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR)));
}

#[test]
fn a_peer_must_leave_us_an_id() {
    let mut cids = cids(4, 1);
    assert!(cids.rotate());
    // Sequence 0 is retired already, and everything below 2 withdrawn with nothing new.
    let error = cids.on_new_connection_id(0, 2, cid(0), token(0)).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn zero_length_ids_cannot_be_replaced() {
    let mut cids = RemoteCids::new(ConnectionId::EMPTY, 4);
    assert!(cids.assign(PathId(1)), "no path needs one");
    assert!(cids.for_path(PathId(1)).is_empty());
    assert!(!cids.rotate());
    assert!(announce(&mut cids, 1, 0).is_err());
}

#[test]
fn paths_get_ids_of_their_own() {
    let (old, new) = (PathId(0), PathId(1));
    let mut cids = cids(4, 2);
    cids.take_tokens_changed();
    assert!(cids.assign(new) && cids.assign(new));
    assert!(cids.take_tokens_changed());
    assert_eq!(cids.for_path(new), &cid(1));
    assert_eq!(cids.for_path(old), &cid(0));
    cids.promote(new, old);
    assert_eq!(cids.active(), &cid(1));
    assert_eq!(cids.for_path(old), &cid(0));
    cids.release(old);
    assert_eq!(written(&mut cids), [0]);
    assert!(cids.assign(PathId(2)));
    assert!(!cids.assign(PathId(3)), "none to spare: it shares the active one");
    assert_eq!(cids.for_path(PathId(3)), &cid(1));
}

#[test]
fn reset_tokens_count_only_while_their_id_is_in_use() {
    let mut cids = cids(4, 2);
    assert!(!cids.matches_reset(&token(1).0));
    cids.set_first_reset_token(token(0));
    assert!(cids.matches_reset(&token(0).0));
    cids.assign(PathId(1));
    assert!(cids.matches_reset(&token(1).0));
    assert!(cids.rotate());
    assert!(!cids.matches_reset(&token(0).0), "retired");
    assert!(cids.matches_reset(&token(2).0));
    assert_eq!(cids.reset_tokens().collect::<Vec<_>>(), [token(2), token(1)]);
}

#[derive(Debug, Clone)]
enum Step {
    Announce { sequence: u64, retire_prior_to: u64 },
    Rotate,
    Assign(u32),
    Promote(u32, u32),
    Release(u32),
    Write,
    Acked(u64),
    Lost(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..40_u64, 0..40_u64)
            .prop_map(|(a, b)| Step::Announce { sequence: a.max(b), retire_prior_to: a.min(b) }),
        Just(Step::Rotate),
        (0..5_u32).prop_map(Step::Assign),
        (0..5_u32, 0..5_u32).prop_map(|(a, b)| Step::Promote(a, b)),
        (0..5_u32).prop_map(Step::Release),
        Just(Step::Write),
        (0..40_u64).prop_map(Step::Acked),
        (0..40_u64).prop_map(Step::Lost),
    ]
}

proptest! {
    #[test]
    fn stays_bounded_and_never_uses_a_retired_id(steps in prop::collection::vec(step(), 0..120)) {
        let mut cids = cids(4, 0);
        let mut retired = std::collections::BTreeSet::new();
        for step in steps {
            let refused = match step {
                Step::Announce { sequence, retire_prior_to } => {
                    announce(&mut cids, sequence, retire_prior_to).is_err()
                }
                Step::Rotate => {
                    let before = *cids.active();
                    let rotated = cids.rotate();
                    prop_assert_eq!(rotated, *cids.active() != before);
                    false
                }
                Step::Assign(path) => {
                    let shared = !cids.assign(PathId(path));
                    prop_assert!(!shared || cids.for_path(PathId(path)) == cids.active());
                    false
                }
                Step::Promote(path, previous) => {
                    cids.promote(PathId(path), PathId(previous));
                    false
                }
                Step::Release(path) => {
                    cids.release(PathId(path));
                    false
                }
                Step::Write => {
                    retired.extend(written(&mut cids));
                    false
                }
                Step::Acked(sequence) => {
                    cids.on_acked(RetiredId(sequence));
                    false
                }
                Step::Lost(sequence) => {
                    cids.repeat(RetiredId(sequence));
                    false
                }
            };
            if refused {
                break;
            }
            prop_assert!(cids.others.len() < 4);
            prop_assert!(cids.retiring.len() <= RemoteCids::MAX_RETIRING);
            prop_assert!(cids.retired.len() <= 8 + 4);
            prop_assert!(cids.others.windows(2).all(|w| w[0].sequence < w[1].sequence));
            for path in 0..5 {
                let used = u64::from_be_bytes(cids.for_path(PathId(path)).as_bytes().try_into().unwrap());
                prop_assert!(used >= cids.retire_prior_to);
                prop_assert!(!retired.contains(&used), "{used} was retired");
            }
        }
    }
}

#[test]
fn paths_that_fail_take_no_ids_for_ever() {
    let mut cids = cids(2, 1);
    // The connection moves twice, and then one path after the other fails.
    for (path, moves) in [(1, true), (2, true), (3, false), (4, false), (5, false), (6, false)] {
        let (next, path) = (u64::from(path) + 1, PathId(path));
        assert!(cids.assign(path), "{path:?}");
        if moves {
            cids.promote(path, PathId(0));
            cids.release(PathId(0));
        } else {
            cids.release(path);
        }
        written(&mut cids).into_iter().for_each(|sequence| cids.on_acked(RetiredId(sequence)));
        announce(&mut cids, next, 0).unwrap();
    }
}
