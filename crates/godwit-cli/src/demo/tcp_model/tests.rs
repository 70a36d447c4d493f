//! The model in virtual time, against what TCP's rules lead one to expect.

use super::*;
use crate::demo::links::Links;
use crate::demo::preset::Conditions;

const MS: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(100);

fn conditions(loss: f64) -> Conditions {
    Conditions { rtt: RTT, loss, burst: Duration::ZERO, megabits: 1000 }
}

fn open(loss: f64, seed: u16) -> Connection {
    let link = Links::new(&conditions(loss), 1).of(seed, Time::ZERO);
    Connection::open(link, Arc::default(), Time::ZERO)
}

/// Runs until `side` has read `bytes` in all, and answers when.
fn run_until(connection: &mut Connection, side: Side, bytes: usize) -> Time {
    let mut read = 0;
    for _ in 0..1_000_000 {
        let now = connection.next().expect("it waits for ever");
        connection.advance(now);
        while let Some(data) = connection.read(side) {
            read += data.len();
        }
        if read >= bytes {
            assert_eq!(read, bytes);
            return now;
        }
    }
    panic!("{read} of {bytes} bytes");
}

fn ms(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// Opens a connection, asks with one byte and is answered with `bytes`.
fn exchange(connection: &mut Connection, bytes: usize) -> Time {
    connection.write(Side::Client, Time::ZERO, Bytes::from_static(b"?"));
    let asked = run_until(connection, Side::Server, 1);
    connection.write(Side::Server, asked, Bytes::from(vec![7; bytes]));
    run_until(connection, Side::Client, bytes)
}

#[test]
fn without_loss_it_takes_the_round_trips_of_slow_start() {
    // One round trip to open, one to ask; then 10, 20, 40 ... segments for each further one.
    let segment = usize::from(sender::SEGMENT);
    for (segments, round_trips) in [(1, 2), (10, 2), (11, 3), (30, 3), (31, 4), (70, 4), (71, 5)] {
        let took = ms(exchange(&mut open(0.0, 1), segments * segment));
        let expected = f64::from(round_trips) * 100.0;
        assert!((expected..expected + 5.0).contains(&took), "{segments} segments: {took} ms");
    }
}

/// A pair of ends whose packets this test loses by hand: the link is perfect.
struct Hand {
    connection: Connection,
}

impl Hand {
    /// An open connection over which `bytes` have gone to the client, at rest.
    fn after(bytes: usize) -> Hand {
        let mut connection = open(0.0, 1);
        exchange(&mut connection, bytes);
        while let Some(next) = connection.next().filter(|_| connection.backlog(Side::Server) > 0) {
            connection.advance(next);
        }
        Hand { connection }
    }

    fn now(&self) -> Time {
        Time::ZERO + RTT * 100
    }

    /// Sends so many segments and loses those with these numbers. Answers how long the client waits for all.
    fn losing(mut self, segments: usize, lost: &[usize]) -> Duration {
        let now = self.now();
        self.connection.advance(now);
        let bytes = segments * usize::from(sender::SEGMENT);
        self.connection.write(Side::Server, now, Bytes::from(vec![7; bytes]));
        let mut wire = DelayQueue::new();
        let mut number = 0;
        while let Some((at, packet)) = self.connection.wire.pop(Time::MAX) {
            if !lost.contains(&number) {
                wire.push(at, packet);
            }
            number += 1;
        }
        self.connection.wire = wire;
        run_until(&mut self.connection, Side::Client, bytes).saturating_since(now)
    }
}

#[test]
fn one_loss_among_many_costs_a_round_trip() {
    let took = Hand::after(1000).losing(10, &[2]);
    assert!((RTT * 3 / 2..RTT * 3 / 2 + 5 * MS).contains(&took), "{took:?}");
}

#[test]
fn a_gap_shown_by_less_than_three_segments_waits_a_quarter_more() {
    let took = Hand::after(1000).losing(3, &[0]);
    let expected = RTT * 3 / 2 + RTT / 4;
    assert!((expected - MS..expected + 5 * MS).contains(&took), "{took:?}");
}

#[test]
fn a_lost_tail_costs_a_probe() {
    // The others are acknowledged after a round trip. From then on the probe waits for two round trips and 200 ms, as
    // for any lone segment, but not beyond the time-out, a round trip and 200 ms. Its own way is half a round trip.
    let took = Hand::after(1000).losing(10, &[9]);
    let timeout = RTT + 200 * MS + RTT / 2;
    let expected = RTT + timeout;
    assert!((expected..expected + 10 * MS).contains(&took), "{took:?}");
    let alone = Hand::after(1000).losing(1, &[0]);
    assert!((timeout..timeout + 50 * MS).contains(&alone), "{alone:?}");
}

#[test]
fn a_lost_syn_costs_a_second() {
    let mut connection = open(0.0, 1);
    while connection.wire.pop(Time::MAX).is_some() {}
    let took = ms(exchange(&mut connection, 100));
    assert!((1200.0..1205.0).contains(&took), "{took} ms");
}

#[test]
fn everything_arrives_however_much_is_lost() {
    for seed in 0..200 {
        let loss = f64::from(seed % 20) / 100.0;
        let mut connection = open(loss, seed);
        let took = exchange(&mut connection, 200_000);
        assert!(took < Time::ZERO + Duration::from_secs(600), "seed {seed}: {} ms", ms(took));
    }
}

#[test]
fn bytes_are_the_bytes() {
    let mut connection = open(0.1, 77);
    let data: Vec<u8> = (0..300_000_u32).map(|number| ((number * 31) >> 8) as u8).collect();
    connection.write(Side::Client, Time::ZERO, Bytes::from(data.clone()));
    let mut got = Vec::new();
    while got.len() < data.len() {
        let now = connection.next().unwrap();
        connection.advance(now);
        while let Some(piece) = connection.read(Side::Server) {
            got.extend_from_slice(&piece);
        }
    }
    assert!(got == data);
}
