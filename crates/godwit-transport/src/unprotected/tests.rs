use super::*;
use godwit_base::{Ecn, SendMeta, SocketId};
use godwit_tls::keys::{OneRtt, PacketSpan, Ratchet, Schedule};
use godwit_tls::secret_tap::Secret;

const LEN: usize = 100;

fn keys() -> Arc<ProtectionKeys> {
    let schedule = Schedule::new(rustls::CipherSuite::TLS13_AES_128_GCM_SHA256, 1).unwrap();
    let ratchet = Ratchet::new(schedule, Secret::new(&[1; 32]), Secret::new(&[2; 32]));
    let mut keys = OneRtt::derived(schedule.level_keys(&[1; 32], &[2; 32]), ratchet);
    Arc::clone(keys.copied().unwrap())
}

/// A batch of two runs with one packet each.
fn batch(runs: &mut UnprotectedRuns, lens: [usize; 2]) -> SendBatch {
    let mut batch = SendBatch::new(2 * LEN);
    let remote = "127.0.0.1:1".parse().unwrap();
    let meta =
        SendMeta { socket: SocketId(0), local: None, remote, ecn: Ecn::NotEct, dscp: 0, release: None };
    for len in lens {
        let number = batch.run_count();
        batch.reserve(LEN).unwrap()[..LEN].fill(0x40);
        batch.commit(LEN, LEN, meta);
        let span = PacketSpan { first: 0, pn_offset: 9, pn_len: 1 };
        runs.push(number, keys(), &[UnprotectedPacket { span, len, path: 0, number: number as u64 }]);
    }
    batch
}

fn bytes(batch: &SendBatch) -> Vec<Vec<u8>> {
    batch.runs().map(|(_, bytes)| bytes.to_vec()).collect()
}

#[test]
fn every_run_is_protected_once() {
    let mut runs = UnprotectedRuns::new();
    let mut batch = batch(&mut runs, [LEN, LEN]);
    assert_eq!(runs.len(), 2);
    assert_eq!(runs.protect(&mut batch), Ok(()));
    assert!(runs.is_empty());
    let protected = bytes(&batch);
    assert!(protected.iter().all(|bytes| bytes[20..] != [0x40; LEN - 20]) && protected[0] != protected[1]);
    assert_eq!(runs.protect(&mut batch), Ok(()));
    assert_eq!(bytes(&batch), protected, "there was nothing left to protect");
}

/// What is encrypted once more under the same number is plaintext again.
#[test]
fn after_a_failure_or_an_interruption_nothing_is_protected_again() {
    let mut runs = UnprotectedRuns::new();
    let mut failing = batch(&mut runs, [LEN, LEN + 1]);
    assert_eq!(runs.protect(&mut failing), Err(NotProtected { run: 1 }));
    let left = bytes(&failing);
    assert_eq!(left[1], [0; LEN], "plaintext is not left behind");
    assert_eq!(runs.protect(&mut failing), Err(NotProtected { run: 1 }));
    assert_eq!(bytes(&failing), left);
    runs.clear();
    let mut interrupted = batch(&mut runs, [LEN, LEN]);
    runs.at = Some(0);
    let before = bytes(&interrupted);
    assert_eq!(runs.protect(&mut interrupted), Err(NotProtected { run: 0 }));
    assert_eq!(bytes(&interrupted), before);
    runs.clear();
    assert_eq!(runs.protect(&mut interrupted), Ok(()));
}
