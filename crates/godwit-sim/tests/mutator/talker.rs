//! An application of either role that does a little of everything for a while: what it says gives the middle something to
//! change.

use crate::middle;
use bytes::Bytes;
use godwit_base::{Rng, SeededRng, SocketId, Time};
use godwit_sim::{Application, Context};
use godwit_transport::tls::deterministic;
use godwit_transport::{
    ClientConfig, ConnKey, Connection, Direction, EarlyDataStatus, Event, IncomingKey, PathKey, ReadChunk,
    StreamId,
};
use std::net::SocketAddr;
use std::time::Duration;

/// How long it talks on a connection.
const TALKS: Duration = Duration::from_millis(1500);
/// Streams that it keeps in mind.
const STREAMS: usize = 24;

struct Talk {
    key: ConnKey,
    until: Time,
    streams: Vec<StreamId>,
}

/// What a client needs to begin connections, and how many it is still to begin.
pub(crate) struct Dialling {
    pub(crate) config: ClientConfig,
    pub(crate) server: SocketAddr,
    pub(crate) left: u32,
}

pub(crate) struct Talker {
    rng: SeededRng,
    talks: Vec<Talk>,
    dialling: Option<Dialling>,
    /// Whether it reads what comes, or leaves most of it lying.
    reads: bool,
    /// Connections whose handshake was completed.
    pub(crate) established: u64,
    /// Those begun with 0-RTT.
    pub(crate) early: u64,
}

impl Talker {
    pub(crate) fn new(seed: u64, dialling: Option<Dialling>) -> Self {
        let mut rng = SeededRng::new(seed);
        let reads = rng.below(4) > 0;
        Talker { rng, talks: Vec::new(), dialling, reads, established: 0, early: 0 }
    }

    fn begin(&mut self, cx: &mut Context<'_>, key: ConnKey) {
        self.talks.push(Talk { key, until: cx.now + TALKS, streams: Vec::new() });
        cx.wake_at(cx.now);
    }

    fn dial(&mut self, cx: &mut Context<'_>) {
        let Some(dialling) = self.dialling.as_mut().filter(|dialling| dialling.left > 0) else { return };
        dialling.left -= 1;
        middle::next_connection();
        let path = PathKey { socket: SocketId(0), local: None, remote: dialling.server };
        let name = deterministic::SERVER_NAME;
        let key = cx.endpoint.connect(cx.now, &dialling.config, path, name, None).unwrap();
        let status = cx.endpoint.connection(key).unwrap().early_data_status();
        self.early += u64::from(status == EarlyDataStatus::Offered);
        self.begin(cx, key);
    }
}

impl Talk {
    /// One thing an application may do.
    fn act(&mut self, now: Time, rng: &mut SeededRng, connection: &mut Connection) {
        let id = self.streams.get(rng.below(self.streams.len() as u64) as usize).copied();
        let code = rng.below(9);
        match rng.below(24) {
            0..3 => {
                let both = rng.below(2) == 0;
                let direction = if both { Direction::Bidirectional } else { Direction::Unidirectional };
                if self.streams.len() < STREAMS {
                    self.streams.extend(connection.open(direction));
                }
            }
            3 => {
                let len = rng.below(1100) as usize;
                let _ = connection.send_datagram(Bytes::from(vec![1; len]), Some(code));
            }
            4 => connection.ping(),
            5 if rng.below(20) == 0 => {
                connection.ping();
                connection.update_keys(now);
            }
            6 if rng.below(20) == 0 => drop(connection.migrate(now, SocketId(0), None)),
            choice => {
                let Some(id) = id else { return };
                match choice {
                    7 => drop(connection.finish(id)),
                    8 if rng.below(4) == 0 => drop(connection.reset(id, code)),
                    9 if rng.below(4) == 0 => drop(connection.reset_at(id, code, rng.below(5000))),
                    10 if rng.below(4) == 0 => drop(connection.stop_sending(id, code)),
                    11 => drop(connection.set_priority(id, rng.below(8) as u8, code < 4)),
                    _ => {
                        let len = rng.below(6000) as usize;
                        let _ = connection.write(id, Bytes::from(vec![2; len]));
                    }
                }
            }
        }
    }

    /// Takes what has come.
    fn take(&mut self, now: Time, connection: &mut Connection) {
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            while self.streams.len() < STREAMS
                && let Some(id) = connection.accept(direction)
            {
                self.streams.push(id);
            }
        }
        self.streams.retain(|id| {
            loop {
                match connection.read(now, *id, 4096) {
                    Ok(ReadChunk::Data(_)) => {}
                    Ok(ReadChunk::Blocked) => return true,
                    Ok(ReadChunk::Finished) => return false,
                    // One that is only written to.
                    Err(_) => return connection.write_room(*id).is_ok(),
                }
            }
        });
        while connection.read_datagram().is_some() {}
        while connection.next_datagram_outcome().is_some() {}
    }
}

impl Application for Talker {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        self.dial(cx);
    }

    fn on_incoming(&mut self, cx: &mut Context<'_>, incoming: IncomingKey) {
        let may_retry = cx.endpoint.incoming(incoming).is_some_and(|incoming| incoming.may_retry());
        match self.rng.below(20) {
            0 => drop(cx.endpoint.refuse(incoming)),
            1 => drop(cx.endpoint.ignore(incoming)),
            2..5 if may_retry => drop(cx.endpoint.retry(incoming)),
            _ => {
                if let Some(key) = cx.accept(incoming) {
                    self.begin(cx, key);
                }
            }
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        match event {
            Event::Connected => self.established += 1,
            Event::Closed { .. } => {
                self.talks.retain(|talk| talk.key != conn);
                self.dial(cx);
            }
            _ => {}
        }
    }

    fn on_wake(&mut self, cx: &mut Context<'_>) {
        let Talker { rng, talks, reads, .. } = self;
        let now = cx.now;
        let mut waiting = false;
        talks.retain_mut(|talk| {
            if now >= talk.until {
                if rng.below(2) == 0 {
                    cx.endpoint.with(talk.key, |connection| connection.close(now, 7, b"enough"));
                }
                // Otherwise the idle timeout has to do.
                return false;
            }
            waiting = true;
            cx.endpoint.with(talk.key, |connection| {
                if *reads || rng.below(30) == 0 {
                    talk.take(now, connection);
                }
                for _ in 0..rng.below(4) {
                    talk.act(now, rng, connection);
                }
            });
            true
        });
        if waiting {
            cx.wake_at(now + Duration::from_micros(500 + rng.below(8000)));
        }
    }
}
