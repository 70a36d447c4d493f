//! Packets that are written before they leave.

use super::*;
use crate::connection::boundary::Transmitted;

/// When a run leaves, and its first datagram.
type Run = (Option<Time>, Vec<u8>);

/// What the client is to send.
fn write_ahead(pair: &mut Pair) -> Vec<Run> {
    pair.batch.clear();
    loop {
        pair.client.machine.look_ahead(pair.now);
        let transmitted = pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
        if transmitted == Transmitted::Idle {
            break;
        }
    }
    pair.batch
        .runs()
        .map(|(run, bytes)| (run.meta.release, bytes[..run.segment.min(run.len)].to_vec()))
        .collect()
}

/// A client in the midst of an upload that has written packets ahead, with those.
fn writing_ahead() -> (Pair, Vec<Run>) {
    let mut pair = Pair::new(TransportConfig { max_mtu: 1200, ecn: false, ..reducing() });
    // A window in 50 ms is less than ten packets in 2.
    pair.delay = Duration::from_millis(25);
    pair.run(50);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    while pair.client.machine.paths.active().recovery.window() < 40_000 {
        let _ = pair.client.write(id, Bytes::from_static(&[7; 100_000])).unwrap();
        pair.run(1);
        while let Ok(ReadChunk::Data(_)) = pair.server.read(pair.now, id, usize::MAX) {}
    }
    let _ = pair.client.write(id, Bytes::from_static(&[7; 100_000])).unwrap();
    let runs = write_ahead(&mut pair);
    assert!(runs.iter().filter(|(release, _)| release.is_some()).count() > 1, "nothing was written ahead");
    (pair, runs)
}

#[test]
fn what_may_leave_soon_is_written_now_and_nothing_overtakes_it() {
    let (mut pair, runs) = writing_ahead();
    let horizon = pair.now + Duration::from_millis(2);
    let times: Vec<_> = runs.iter().map(|(release, _)| release.unwrap_or(pair.now)).collect();
    assert!(times.is_sorted() && times.iter().all(|at| *at <= horizon), "{times:?}");
    assert!(runs.iter().all(|(release, _)| release.is_none_or(|at| at > pair.now)));
    let last = *times.last().unwrap();
    // The next packets are asked for before they may leave, and not at once.
    let deadline = pair.client.deadline().unwrap();
    assert!(deadline > pair.now && deadline < horizon, "{deadline:?}");
    // What has to be said at once leaves behind the others.
    pair.client.machine.parts.ping.send();
    pair.client.machine.spaces.data.space.probes = 1;
    let urgent = write_ahead(&mut pair);
    assert!(!urgent.is_empty() && urgent.iter().all(|(release, _)| *release >= Some(last)), "{urgent:?}");
    // When the last has left, what follows is no longer held back for it.
    pair.now = last;
    pair.client.machine.spaces.data.space.probes = 1;
    assert_eq!(write_ahead(&mut pair).first().unwrap().0, None);
}

#[test]
fn who_is_not_asked_to_look_ahead_waits_for_the_pacer() {
    let (mut pair, _) = writing_ahead();
    pair.client.machine.leave_at_once();
    for _ in 0..20 {
        pair.now = pair.client.deadline().unwrap().max(pair.now + Duration::from_millis(3));
        pair.client.on_timeout(pair.now);
        pair.batch.clear();
        while pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
        assert!(pair.batch.runs().all(|(run, _)| run.meta.release.is_none()));
    }
}

#[test]
fn an_answer_before_the_departure_ends_it() {
    let (mut pair, runs) = writing_ahead();
    let before = pair.client.stats().min_rtt;
    // The system has let them go at once, and the peer is near now.
    for (_, datagram) in &runs {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram.clone());
    }
    pair.server.machine.on_batch_end(pair.now);
    pair.batch.clear();
    while pair.server.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
    let answers: Vec<_> = pair.batch.datagrams().map(|(_, datagram)| datagram.to_vec()).collect();
    for mut answer in answers {
        pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut answer);
    }
    assert_eq!(pair.client.stats().min_rtt, before, "it took less than no time: that is no round trip");
    for _ in 0..20 {
        pair.now += Duration::from_millis(1);
        pair.client.on_timeout(pair.now);
        assert!(write_ahead(&mut pair).iter().all(|(release, _)| release.is_none()));
    }
}
