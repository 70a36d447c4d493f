//! What is under way on a path when the connection leaves it, in virtual time.

mod common;

use bytes::Bytes;
use common::Pair;
use godwit_base::Time;
use godwit_transport::congestion::{
    Acked, CongestionController, ControllerFactory, ControllerStart, Lost, Sent,
};
use godwit_transport::observe::ObserverFactory;
use godwit_transport::{CongestionControl, Direction, ReadChunk, TransportConfig};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(4);

/// What the controllers of a connection's paths have heard, one after the other.
#[derive(Debug, Default)]
struct Heard {
    sent: u64,
    acked: u64,
    lost: Vec<Lost>,
    congestion: u32,
    ticks: Vec<Time>,
}

#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<Heard>>>);

impl ControllerFactory for Notes {
    fn controller(&self, start: &ControllerStart) -> Box<dyn CongestionController> {
        let mut paths = self.0.lock().unwrap();
        paths.push(Heard::default());
        Box::new(Noting { notes: self.clone(), path: paths.len() - 1, next_tick: start.now + TICK })
    }
}

/// Notes what it hears; its window stays as it is.
#[derive(Debug)]
struct Noting {
    notes: Notes,
    path: usize,
    next_tick: Time,
}

impl Noting {
    fn note(&self, f: impl FnOnce(&mut Heard)) {
        f(&mut self.notes.0.lock().unwrap()[self.path]);
    }
}

impl CongestionController for Noting {
    fn on_sent(&mut self, sent: &Sent) {
        self.note(|heard| heard.sent += sent.bytes);
    }

    fn on_ack(&mut self, acked: &Acked<'_>) {
        self.note(|heard| heard.acked += acked.all_bytes);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.note(|heard| heard.lost.push(*lost));
    }

    fn on_congestion(&mut self, _: Time) {
        self.note(|heard| heard.congestion += 1);
    }

    fn on_persistent_congestion(&mut self) {}

    fn on_mtu_changed(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        100_000
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.next_tick)
    }

    fn on_deadline(&mut self, now: Time) {
        self.note(|heard| heard.ticks.push(now));
        self.next_tick = now + TICK;
    }
}

#[test]
fn what_a_path_carried_when_it_was_left_is_lost_by_its_own_timer_and_told_to_its_own_controller() {
    let notes = Notes::default();
    let mut transport: TransportConfig = common::transport();
    transport.congestion = CongestionControl::Custom(Arc::new(notes.clone()));
    let mut pair = Pair::new(&ObserverFactory::default(), transport);
    let client = pair.connect(common::transport());
    pair.steps(5);
    let (Some(server), _) = pair.server_events() else { panic!("no connection") };
    let data = vec![7; 30_000];
    let id = pair.server.with(server, |connection| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.write(id, Bytes::from(data.clone())).unwrap();
        connection.finish(id).unwrap();
        id
    });
    let id = id.unwrap();
    // The client is somewhere else, and what the server sends until it knows reaches nobody.
    pair.client_address = "198.51.100.9:4000".parse().unwrap();
    let left_at = pair.now;
    pair.carry(false);
    let left = pair.server.with(server, |connection| connection.paths().next().unwrap()).unwrap();
    assert!(left.bytes_in_flight > 10_000, "{left:?}");
    pair.say(client, b"I am here now");
    let mut received = 0;
    for _ in 0..40 {
        pair.step();
        let now = pair.now;
        pair.client.with(client, |connection| {
            while let Ok(ReadChunk::Data(chunk)) = connection.read(now, id, usize::MAX) {
                received += chunk.len();
            }
        });
    }
    assert_eq!(received, data.len());
    let paths = notes.0.lock().unwrap();
    let [old, new, ..] = &paths[..] else { panic!("{} paths", paths.len()) };
    let lost: u64 = old.lost.iter().map(|lost| lost.bytes).sum();
    assert_eq!(lost, left.bytes_in_flight, "all of it");
    assert_eq!(old.congestion, 1);
    // Its round-trip time is 10 ms: nine eighths of that, as soon as steps of 5 ms allow.
    let after = |lost: &Lost| lost.now.saturating_since(lost.sent_at);
    let limits = Duration::from_nanos(11_250_000)..=Duration::from_millis(25);
    assert!(old.lost.iter().all(|lost| lost.sent_at == left_at && limits.contains(&after(lost))), "{old:?}");
    assert!(new.lost.is_empty() && new.congestion == 0, "{new:?}");
    assert!(new.acked >= data.len() as u64 && new.acked <= new.sent);
    // Its deadlines are kept as long as something is in flight, and no longer.
    let (lost_at, ticks) = (old.lost[0].now, |since| old.ticks.iter().filter(move |at| **at > since).count());
    assert!(ticks(left_at) > ticks(lost_at), "{:?}", old.ticks);
    assert_eq!(ticks(lost_at + TICK), 0, "{:?}", old.ticks);
    assert!(new.ticks.iter().any(|at| *at > lost_at + TICK));
}
