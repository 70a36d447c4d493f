//! A congestion controller that a program brings along, made of nothing but what this crate shows.

mod common;

use bytes::Bytes;
use common::Pair;
use godwit_base::{Ecn, Time};
use godwit_transport::congestion::{
    Acked, CeMarks, CongestionController, ControllerFactory, ControllerStart, Lost, Pacing, RateSample,
    SavedState, Sent,
};
use godwit_transport::observe::ObserverFactory;
use godwit_transport::tls::resumption::{MemorySessions, Resumption};
use godwit_transport::{CongestionControl, ConnKey, Direction, TransportConfig};
use godwit_transport::{ReadChunk, ReadError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RATE: u64 = 500_000;
const BURST: u64 = 3_000;
const TICK: Duration = Duration::from_millis(40);

/// What the controllers have been told.
#[derive(Debug, Default)]
struct Told {
    starts: Vec<ControllerStart>,
    sent: Vec<Sent>,
    acked: u64,
    samples: Vec<RateSample>,
    lost: Vec<Lost>,
    congestion: u32,
    marks: Vec<CeMarks>,
    ticks: Vec<Time>,
}

#[derive(Debug, Clone, Default)]
struct Ours {
    told: Arc<Mutex<Told>>,
}

impl ControllerFactory for Ours {
    fn controller(&self, start: &ControllerStart) -> Box<dyn CongestionController> {
        self.told.lock().unwrap().starts.push(*start);
        let next_tick = start.now + TICK;
        Box::new(Steady { told: Arc::clone(&self.told), window: 40_000, next_tick, best: 0 })
    }

    fn ect(&self) -> Ecn {
        Ecn::Ect1
    }
}

/// Sends at a steady rate, whatever happens.
#[derive(Debug)]
struct Steady {
    told: Arc<Mutex<Told>>,
    window: u64,
    next_tick: Time,
    best: u64,
}

impl CongestionController for Steady {
    fn on_sent(&mut self, sent: &Sent) {
        self.told.lock().unwrap().sent.push(*sent);
    }

    fn on_ack(&mut self, acked: &Acked<'_>) {
        let mut told = self.told.lock().unwrap();
        told.acked += acked.all_bytes;
        if let Some(sample) = acked.delivery {
            self.best = self.best.max(sample.rate);
            told.samples.push(sample);
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.told.lock().unwrap().lost.push(*lost);
    }

    fn on_ecn(&mut self, marks: &CeMarks) {
        self.told.lock().unwrap().marks.push(*marks);
    }

    fn on_congestion(&mut self, _: Time) {
        self.told.lock().unwrap().congestion += 1;
    }

    fn on_persistent_congestion(&mut self) {}

    fn on_mtu_changed(&mut self, _: u16) {}

    fn deadline(&self) -> Option<Time> {
        Some(self.next_tick)
    }

    fn on_deadline(&mut self, now: Time) {
        self.told.lock().unwrap().ticks.push(now);
        self.next_tick = now + TICK;
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        Some(0)
    }

    fn pacing(&self) -> Option<Pacing> {
        Some(Pacing::new(RATE, BURST))
    }

    fn wants_rate_samples(&self) -> bool {
        true
    }

    fn export(&self) -> Option<SavedState> {
        let mut state = SavedState::default();
        (state.rtt, state.window, state.rate) = (Duration::from_millis(10), 77_000, self.best);
        Some(state)
    }
}

fn transport(ours: &Ours) -> TransportConfig {
    let mut config = common::transport();
    config.congestion = CongestionControl::Custom(Arc::new(ours.clone()));
    config
}

/// Sends `data` from the client; what the server has read after so many round trips.
fn upload(pair: &mut Pair, client: ConnKey, data: Vec<u8>, steps: usize) -> usize {
    let written = pair.client.with(client, |connection| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.write(id, Bytes::from(data)).unwrap();
        connection.finish(id).unwrap();
        id
    });
    let id = written.unwrap();
    let (mut server, mut read) = (None, 0);
    for _ in 0..steps {
        pair.step();
        server = server.or(pair.server_events().0);
        let Some(server) = server else { continue };
        let now = pair.now;
        pair.server.with(server, |connection| {
            loop {
                match connection.read(now, id, usize::MAX) {
                    Ok(ReadChunk::Data(chunk)) => read += chunk.len(),
                    Ok(_) | Err(ReadError::UnknownStream) => return,
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
    }
    read
}

#[test]
fn a_transfer_is_driven_by_a_controller_from_outside() {
    let ours = Ours::default();
    let mut pair = Pair::new(&ObserverFactory::default(), common::transport());
    let client = pair.connect(transport(&ours));
    pair.steps(5);
    pair.lose_every = 20;
    let began = pair.now;
    let read = upload(&mut pair, client, vec![7; 100_000], 60);
    assert_eq!(read, 100_000);
    let told = ours.told.lock().unwrap();
    assert_eq!((told.starts.len(), told.starts[0].saved), (1, None));
    assert!(told.acked >= 100_000, "{}", told.acked);
    // Its pace: in no time more than the rate and a burst allow.
    let during: Vec<&Sent> = told.sent.iter().filter(|sent| sent.now >= began).collect();
    let (mut bytes, mut last) = (0, began);
    for sent in &during {
        bytes += sent.bytes;
        last = last.max(sent.now);
        let allowed = u128::from(RATE) * last.saturating_since(began).as_nanos() / 1_000_000_000;
        assert!(u128::from(bytes) <= allowed + u128::from(BURST) + 4_000, "{bytes} bytes in {allowed}");
    }
    assert!(last.saturating_since(began) >= Duration::from_millis(150), "it took its time");
    // Its deadlines, its losses, its samples and its marks.
    assert!(told.ticks.len() >= 5, "{:?}", told.ticks);
    assert!(told.ticks.windows(2).all(|pair| pair[1].saturating_since(pair[0]) >= TICK));
    assert!(!told.lost.is_empty() && told.congestion > 0);
    assert!(
        told.lost
            .iter()
            .all(|lost| lost.in_flight >= Some(lost.bytes) && lost.lost_since >= Some(lost.bytes))
    );
    assert!(!told.samples.is_empty() && told.samples.iter().all(|sample| sample.rate < 2 * RATE));
    assert!(told.samples.iter().any(|sample| sample.app_limited));
    assert!(told.samples.iter().any(|sample| !sample.app_limited && sample.lost > 0));
    assert!(told.marks.iter().any(|marks| marks.marked > 0 && marks.ce == 0), "ECT(1) passes");
}

#[test]
fn a_controller_begins_with_what_the_one_before_has_left() {
    let (ours, store) = (Ours::default(), Arc::new(MemorySessions::new(10)));
    let mut resumption = Resumption::default();
    resumption.store = Some(store);
    let mut pair = Pair::new(&ObserverFactory::default(), common::transport());
    for _ in 0..2 {
        let client = pair.connect_resuming(transport(&ours), resumption.clone());
        pair.steps(5);
        upload(&mut pair, client, vec![7; 20_000], 20);
        let now = pair.now;
        pair.client.with(client, |connection| connection.close(now, 0, b""));
        pair.steps(30);
    }
    let told = ours.told.lock().unwrap();
    assert_eq!((told.starts.len(), told.starts[0].saved), (2, None));
    let saved = told.starts[1].saved.unwrap();
    assert_eq!(saved.window, 77_000);
    assert!(saved.rate > 0 && !saved.rtt.is_zero(), "{saved:?}");
}
