//! Who visits what: the share of requests over QUIC where UDP works, and what is lost where it does not.

use std::time::Duration;

use super::world::{Path, Udp, Visit};
use crate::decision::belief::{Belief, UdpState};
use crate::decision::head_start::HeadStart;
use crate::decision::lesson::Lesson;

const RTTS: [u64; 4] = [350, 425, 725, 2300];
/// In per cent.
const LOSSES: [f64; 4] = [0.0, 3.5, 7.0, 10.0];
/// Requests of one visit.
const REQUESTS: u32 = 10;
/// Bytes: half a second of the link, and a few packets.
const DEEP: u64 = 625_000;
const SHALLOW: u64 = 30_000;

fn path(rtt: u64, loss: f64, queue: u64, udp: Udp) -> Path {
    Path { rtt: Duration::from_millis(rtt), loss, queue, udp }
}

/// Visits by somebody who has been there: the round-trip time is known.
fn visits(path: &Path, number: u64) -> Vec<Visit> {
    let known = Some(path.rtt);
    (0..number).map(|seed| path.visit(seed, HeadStart::after(known), known, REQUESTS)).collect()
}

/// Per cent.
fn share(visits: &[Visit]) -> f64 {
    let sum = |count: fn(&Visit) -> u32| visits.iter().map(count).sum::<u32>();
    100.0 * f64::from(sum(|visit| visit.over_quic)) / f64::from(sum(|visit| visit.requests))
}

#[test]
fn where_udp_works_nearly_everything_goes_over_quic() {
    println!("requests over HTTP/3, of {REQUESTS} in a visit, in per cent (all visits with HTTP/3 alone)");
    println!("{:>8} {:>8} {:>16} {:>16}", "rtt", "loss", "deep queue", "shallow queue");
    for rtt in RTTS {
        for loss in LOSSES {
            let cell = |queue| {
                let number = if (rtt, loss) == (350, 7.0) { 100 } else { 12 };
                let all = visits(&path(rtt, loss, queue, Udp::Works), number);
                let delayed = all.iter().any(|visit| visit.ready > Duration::from_millis(rtt * 21 / 20));
                assert!(number < 100 || delayed, "nothing is lost");
                let whole = all.iter().filter(|visit| visit.over_quic == visit.requests).count();
                (share(&all), 100.0 * whole as f64 / all.len() as f64)
            };
            let (deep, shallow) = (cell(DEEP), cell(SHALLOW));
            println!(
                "{rtt:>5} ms {loss:>6} % {:>8.1} ({:>3.0}) {:>10.1} ({:>3.0})",
                deep.0, deep.1, shallow.0, shallow.1
            );
            if rtt == 350 && loss <= 7.0 {
                assert!(deep.0 >= 99.0 && shallow.0 >= 99.0, "{rtt} ms, {loss} %: {deep:?} {shallow:?}");
            }
        }
    }
}

#[test]
fn who_does_not_know_the_way_goes_over_tcp_now_and_then() {
    // QUIC's first packet is sent again after a second then: so the share above can be another.
    let path = path(350, 10.0, DEEP, Udp::Works);
    let all = (0..60).map(|seed| path.visit(seed, HeadStart::after(None), None, REQUESTS));
    assert!(share(&all.collect::<Vec<_>>()) < 100.0);
}

#[test]
fn where_it_does_not_a_round_trip_and_50_ms_are_lost_once() {
    println!("lost to plain HTTP/2, at most, at the first visit and at the next");
    for udp in [Udp::Silent, Udp::Prohibited, Udp::SomebodyElse, Udp::NobodyListens] {
        for rtt in [20, 100].into_iter().chain(RTTS) {
            for loss in LOSSES {
                let path = path(rtt, loss, DEEP, udp);
                let (mut first, mut second) = (Duration::ZERO, Duration::ZERO);
                for seed in 0..8 {
                    let visit = path.visit(seed, HeadStart::after(Some(path.rtt)), Some(path.rtt), 3);
                    assert_eq!(visit.over_quic, 0);
                    first = first.max(visit.ready.saturating_sub(visit.plain));
                    let Some(head_start) = next_time(&visit) else { continue };
                    let next = path.visit(seed + 100, head_start, None, 3);
                    second = second.max(next.ready.saturating_sub(next.plain));
                }
                println!("{udp:?}, {rtt} ms, {loss} %: {first:.0?}, {second:.0?}");
                assert!(first <= path.rtt + Duration::from_millis(50), "{udp:?} {rtt} {loss}: {first:?}");
                assert_eq!(second, Duration::ZERO, "{udp:?} {rtt} {loss}");
            }
        }
    }
}

/// The head start after what a visit has taught of the server; `None` where QUIC is not tried at all, or nothing was learnt.
fn next_time(visit: &Visit) -> Option<HeadStart> {
    let mut server = Belief::default();
    match visit.lesson {
        Lesson::Silent(flights) => server.on_silence(1000, "a", flights, false),
        Lesson::Server => server.on_silence(1000, "a", 2, false),
        Lesson::Heard => panic!("nothing was heard"),
        Lesson::Nothing => return None,
    }
    match server.state(1001) {
        UdpState::Works => panic!("nothing was learnt of {:?}", visit.lesson),
        UdpState::Doubtful => Some(HeadStart::NONE),
        UdpState::Blocked => None,
    }
}

#[test]
fn a_first_contact_without_any_memory_loses_no_more() {
    for rtt in [20, 100].into_iter().chain(RTTS) {
        let path = path(rtt, 0.0, DEEP, Udp::Silent);
        let visit = path.visit(1, HeadStart::after(None), None, 1);
        assert!(visit.ready <= visit.plain + Duration::from_millis(50), "{rtt}: {visit:?}");
    }
}

#[test]
fn a_bad_network_is_not_taken_for_one_that_blocks_udp() {
    // Everybody's UDP works, and a quarter of all packets are lost.
    let path = path(350, 25.0, DEEP, Udp::Works);
    let mut network = Belief::default();
    for seed in 0..40 {
        let visit = path.visit(seed, HeadStart::after(Some(path.rtt)), Some(path.rtt), 2);
        match visit.lesson {
            Lesson::Silent(flights) => network.on_silence(1000, &format!("server {seed}"), flights, true),
            Lesson::Heard => network.on_heard(1000),
            Lesson::Server | Lesson::Nothing => {}
        }
        network.on_tcp(visit.tcp_began && visit.lesson == Lesson::Nothing);
        assert_ne!(network.state(1001), UdpState::Blocked, "after visit {seed}: {visit:?}");
    }
}

#[test]
fn two_silent_servers_end_the_attempts_and_one_answer_begins_them_again() {
    let path = path(350, 0.0, DEEP, Udp::Silent);
    let mut network = Belief::default();
    for (seed, whom) in [(1, "a"), (2, "b")] {
        let visit = path.visit(seed, HeadStart::after(Some(path.rtt)), Some(path.rtt), 2);
        let Lesson::Silent(flights) = visit.lesson else { panic!("{visit:?}") };
        network.on_silence(1000, whom, flights, true);
    }
    assert_eq!(network.state(1001), UdpState::Blocked);
    assert_eq!(network.state(1031), UdpState::Doubtful, "a probe in the background");
    network.on_heard(1031);
    assert_eq!(network.state(1032), UdpState::Works);
}

#[test]
fn one_dead_family_and_throttling_keep_nobody_from_quic() {
    println!("requests over HTTP/3 in per cent, no loss");
    for udp in [Udp::OneFamilyDead, Udp::OneFamilySilent, Udp::Throttled] {
        for rtt in RTTS {
            let all = visits(&path(rtt, 0.0, DEEP, udp), 4);
            println!("{udp:?}, {rtt} ms: {:.0}", share(&all));
            assert!(share(&all) >= 90.0, "{udp:?} {rtt}: {all:?}");
        }
    }
}
