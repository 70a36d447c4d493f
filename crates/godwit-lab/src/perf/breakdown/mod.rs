//! Where the processor time of a client goes: its work is timed where it passes from one part to another.
//!
//! - **crypto**: sealing and opening packets, and their headers (`cipher`);
//! - **UDP**: the calls that receive and send (`datapath`);
//! - **application**: this program's tasks, with what they do in the library when they open, write and read streams, but
//!   without the parts above;
//! - **the rest** of the process's time is QUIC, with handshakes, timers and the runtime.
//!
//! The clock is read twice around each: some 50 ns for a packet, which is why it is done only if it is asked for. It is a clock
//! on the wall, as that of the thread takes a system call. What takes longer than it ever should has been waiting for a core:
//! it counts up to a limit.

mod cipher;
mod datapath;

pub(super) use cipher::timed as timed_provider;
pub(super) use datapath::WithClock as TimedDatapaths;

use godwit_text::instant_now;
use serde::Serialize;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// What has been spent so far, by everything in this process that is timed.
static SPENT: Ledger = Ledger::new();

/// Nanoseconds by part.
#[derive(Debug)]
struct Ledger {
    crypto: AtomicU64,
    udp: AtomicU64,
    application: AtomicU64,
}

impl Ledger {
    const fn new() -> Ledger {
        Ledger { crypto: AtomicU64::new(0), udp: AtomicU64::new(0), application: AtomicU64::new(0) }
    }
}

/// A part that is timed.
#[derive(Debug, Clone, Copy)]
enum Part {
    Crypto,
    Udp,
}

/// The longest that a packet is worked on, and that a call or a turn of a task takes.
const PACKET: Duration = Duration::from_micros(100);
const CALL: Duration = Duration::from_millis(1);

/// Does something, and counts how long it takes.
fn timed<T>(part: Part, work: impl FnOnce() -> T) -> T {
    let began = instant_now();
    let result = work();
    let (counter, most) = match part {
        Part::Crypto => (&SPENT.crypto, PACKET),
        Part::Udp => (&SPENT.udp, CALL),
    };
    add(counter, instant_now().saturating_duration_since(began), most);
    result
}

fn add(counter: &AtomicU64, time: Duration, most: Duration) {
    let nanos = u64::try_from(time.min(most).as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanos, Ordering::Relaxed);
}

/// Time by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spent {
    crypto: Duration,
    udp: Duration,
    application: Duration,
}

impl Spent {
    /// So far.
    pub(super) fn now() -> Spent {
        let of = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        Spent { crypto: of(&SPENT.crypto), udp: of(&SPENT.udp), application: of(&SPENT.application) }
    }

    /// From then on, until now.
    pub(super) fn since(&self) -> Spent {
        let now = Spent::now();
        Spent {
            crypto: now.crypto.saturating_sub(self.crypto),
            udp: now.udp.saturating_sub(self.udp),
            application: now.application.saturating_sub(self.application),
        }
    }

    fn elsewhere(&self) -> Duration {
        self.crypto + self.udp
    }
}

/// A task of the application whose time is counted.
#[derive(Debug)]
pub(super) struct Task<F>(Pin<Box<F>>);

impl<F> Task<F> {
    pub(super) fn new(task: F) -> Task<F> {
        Task(Box::pin(task))
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let (before, began) = (Spent::now(), instant_now());
        let polled = self.0.as_mut().poll(cx);
        let took = instant_now().saturating_duration_since(began);
        add(&SPENT.application, took.saturating_sub(before.since().elsewhere()), CALL);
        polled
    }
}

/// The processor time of a run, by part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Breakdown {
    /// Sealing and opening packets.
    pub crypto: Share,
    /// The calls that receive and send.
    pub udp: Share,
    /// This program's tasks.
    pub application: Share,
    /// QUIC with handshakes, timers and the runtime: the rest.
    pub quic: Share,
}

/// What one part took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// Of the whole, from 0 to 1.
    pub share: f64,
    /// Seconds on a core.
    pub seconds: f64,
    /// Per 10^9 bytes of stream data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_gb: Option<f64>,
    /// Microseconds per request or handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us_each: Option<f64>,
}

impl Breakdown {
    /// Of all that the process `ran`, in which so many bytes, requests or handshakes passed.
    pub(super) fn new(spent: Spent, ran: Duration, bytes: Option<u64>, each: Option<u64>) -> Breakdown {
        let timed = spent.crypto + spent.udp + spent.application;
        let rest = ran.saturating_sub(timed);
        // The clocks differ: where a process waits much, parts may come to more than it ran.
        let whole = ran.max(timed);
        let share = |part: Duration| {
            let seconds = part.as_secs_f64();
            let per = |count: Option<u64>, unit: f64| {
                count.filter(|count| *count > 0).map(|count| rounded(seconds * unit / count as f64))
            };
            let share = if whole.is_zero() { 0.0 } else { rounded(seconds / whole.as_secs_f64()) };
            let (seconds_per_gb, us_each) = (per(bytes, 1e9), per(each, 1e6));
            Share { share, seconds: rounded(seconds), seconds_per_gb, us_each }
        };
        Breakdown {
            crypto: share(spent.crypto),
            udp: share(spent.udp),
            application: share(spent.application),
            quic: share(rest),
        }
    }

    /// The parts with their names, in the order of a table.
    pub(super) fn parts(&self) -> [(&'static str, Share); 4] {
        [("crypto", self.crypto), ("UDP", self.udp), ("QUIC", self.quic), ("application", self.application)]
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_no_part_has_taken() {
        let of = Duration::from_millis;
        let spent = Spent { crypto: of(200), udp: of(300), application: of(100) };
        let breakdown = Breakdown::new(spent, of(1000), Some(2_000_000_000), None);
        let parts = breakdown.parts().map(|(_, part)| (part.share, part.seconds_per_gb.unwrap()));
        assert_eq!(parts, [(0.2, 0.1), (0.3, 0.15), (0.4, 0.2), (0.1, 0.05)]);
        assert_eq!(breakdown.crypto.us_each, None);
        let breakdown = Breakdown::new(spent, of(1000), None, Some(1000));
        assert_eq!((breakdown.udp.us_each, breakdown.udp.seconds_per_gb), (Some(300.0), None));
        let shares = Breakdown::new(spent, of(500), None, None).parts().map(|(_, part)| part.share);
        assert_eq!(shares, [0.3333, 0.5, 0.0, 0.1667]);
        let nothing = Spent { crypto: of(0), udp: of(0), application: of(0) };
        assert_eq!(Breakdown::new(nothing, of(0), None, None).quic.share, 0.0);
    }

    #[tokio::test]
    async fn a_task_is_counted_without_the_parts_in_it() {
        let before = Spent::now();
        Task::new(async {
            // What takes so long has waited.
            std::thread::sleep(CALL * 5);
            timed(Part::Crypto, || std::thread::sleep(PACKET * 5));
            timed(Part::Udp, || std::thread::sleep(CALL * 5));
        })
        .await;
        assert_eq!(before.since(), Spent { crypto: PACKET, udp: CALL, application: CALL });
        let before = Spent::now();
        Task::new(async { timed(Part::Udp, || ()) }).await;
        assert!(before.since().crypto.is_zero());
    }
}
