use super::*;
use godwit_base::{Ecn, SocketId};
use godwit_os::clock::since_boot;

fn meta(port: u16) -> RecvMeta {
    let remote = ([192, 0, 2, 1], port).into();
    RecvMeta { socket: SocketId(3), local: None, remote, ecn: Ecn::Ce, len: 0, stride: 1200 }
}

#[test]
fn runs_come_through_as_they_are() {
    let (give, mut take) = pair().unwrap();
    let give = RelaySender::new(give);
    let mut batch = RecvBatch::new(4, 65_536);
    assert_eq!(take.receive(&mut batch).unwrap(), TakenIn::default());
    let before = since_boot();
    // The largest run there is has its place beside the header.
    for (port, len) in [(1, 1200), (2, 65_507), (3, 1)] {
        assert_eq!(give.send(&meta(port), since_boot(), &vec![port as u8; len]), Relayed::Done);
    }
    let delivery = take.receive(&mut batch).unwrap();
    assert_eq!((delivery.runs, delivery.closed), (3, false));
    assert!(delivery.received >= before && delivery.received <= since_boot());
    let runs: Vec<_> = batch.runs().map(|(meta, run)| (meta.remote.port(), run.len(), run[0])).collect();
    assert_eq!(runs, [(1, 1200, 1), (2, 65_507, 2), (3, 1, 3)]);
    assert!(batch.runs().all(|(got, _)| RecvMeta { len: 0, ..got } == meta(got.remote.port())));
}

#[test]
fn what_is_not_taken_is_dropped_and_nobody_waits() {
    let (give, mut take) = pair().unwrap();
    let give = RelaySender::new(give);
    let (sent, mut dropped) = (100_000, 1);
    for _ in 0..sent {
        let relayed = give.send(&meta(1), Duration::ZERO, &[7; 1200]);
        assert_ne!(relayed, Relayed::Gone);
        dropped += u64::from(relayed == Relayed::Dropped);
    }
    assert_eq!(give.send(&meta(1), Duration::ZERO, &[7; 1200]), Relayed::Dropped);
    let (mut batch, mut got) = (RecvBatch::new(16, 2048), 0);
    loop {
        batch.clear();
        let delivery = take.receive(&mut batch).unwrap();
        got += delivery.runs as u64;
        if !delivery.more {
            break;
        }
    }
    assert!(got > 0);
    assert_eq!(got + dropped, sent + 1);
}

#[test]
fn each_end_learns_of_the_others_end() {
    let (give, mut take) = pair().unwrap();
    let second = RelaySender::new(give.try_clone().unwrap());
    let first = RelaySender::new(give);
    let mut batch = RecvBatch::new(4, 2048);
    assert_eq!(first.send(&meta(1), Duration::ZERO, b"last words"), Relayed::Done);
    drop(first);
    let delivery = take.receive(&mut batch).unwrap();
    assert_eq!((delivery.runs, delivery.closed), (1, false), "one of two is left");
    assert!(second.is_open());
    drop(second);
    assert!(take.receive(&mut batch).unwrap().closed);
    assert!(take.receive(&mut batch).unwrap().closed, "still");

    let (give, take) = pair().unwrap();
    let give = RelaySender::new(give);
    drop(take);
    assert!(!give.is_open());
    assert_eq!(give.send(&meta(1), Duration::ZERO, b"anybody?"), Relayed::Gone);
    assert_eq!(give.send(&meta(1), Duration::ZERO, b"anybody?"), Relayed::Gone);
}

#[test]
fn what_is_not_understood_is_left_out() {
    use std::io::Write;
    let (give, mut take) = pair().unwrap();
    let mut stream = std::os::unix::net::UnixStream::from(give.try_clone().unwrap());
    stream.write_all(b"short").unwrap();
    stream.write_all(&[9; 500]).unwrap();
    assert_eq!(RelaySender::new(give).send(&meta(5), Duration::ZERO, b"good"), Relayed::Done);
    let mut batch = RecvBatch::new(4, 2048);
    assert_eq!(take.receive(&mut batch).unwrap().runs, 1);
    assert_eq!(batch.runs().next().unwrap().1, b"good");
}
