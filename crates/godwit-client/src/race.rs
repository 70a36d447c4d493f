//! QUIC and TCP raced: QUIC gets a head start that is no longer than it needs where UDP works, and so costs little
//! where it does not. Who loses may go on, and what it meets is evidence for the next time.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use godwit::http3::Client;
use godwit_text::instant_now;
use tokio::task::JoinHandle;
use tokio::time::{Instant as TokioInstant, sleep};

use crate::connect::Blame;
use crate::connect::quic::Evidence;
use crate::error::{Error, ErrorKind};
use crate::memory::Http3Place;
use crate::network::{ConnectFailure, Connected, Network};
use crate::target::Origin;

/// The head start where nothing is known of the round-trip time.
const UNKNOWN: Duration = Duration::from_millis(50);
/// The shortest head start: even a server next door has to compute.
const SHORTEST: Duration = Duration::from_millis(20);
/// What a head start may last beyond the round-trip time.
const BEYOND: Duration = Duration::from_millis(40);
/// From the first sign of life on, a handshake may take this much longer before TCP is begun, where nothing is
/// known of the round-trip time, or it is short.
const LIVELY: Duration = Duration::from_millis(300);
/// A handshake's first packet is sent again after about a second: beyond this it was lost twice.
const TWO_FLIGHTS: Duration = Duration::from_millis(2500);

/// How long TCP waits for QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadStart {
    /// As long as nothing has come back.
    pub(crate) silent: Duration,
    /// Besides, if something has.
    pub(crate) lively: Duration,
}

impl HeadStart {
    pub(crate) const NONE: HeadStart = HeadStart { silent: Duration::ZERO, lively: Duration::ZERO };

    /// The first answer over QUIC comes after one round trip.
    pub(crate) fn after(rtt: Option<Duration>) -> HeadStart {
        let Some(rtt) = rtt else { return HeadStart { silent: UNKNOWN, lively: LIVELY } };
        let usual = rtt + rtt / 4 + BEYOND / 4;
        HeadStart { silent: usual.clamp(SHORTEST, rtt + BEYOND), lively: LIVELY.max(rtt * 2) }
    }
}

/// Who won.
pub(crate) enum Winner<Q, T, E> {
    /// QUIC, and how long TCP had been tried besides.
    Quic(Q, Option<Duration>),
    /// TCP, when it was begun, and why QUIC has failed, if it has.
    Tcp(T, Duration, Option<E>),
}

/// Races `quic`, which has begun, against `tcp`, which begins when it is first polled.
///
/// # Errors
/// Both errors, if both fail: that of TCP last.
pub(crate) async fn contest<Q, T, E>(
    quic: &mut (impl Future<Output = Result<Q, E>> + Unpin),
    tcp: impl Future<Output = Result<T, E>>,
    head_start: HeadStart,
    is_heard: impl Fn() -> bool,
) -> Result<Winner<Q, T, E>, (E, E)> {
    let begun = TokioInstant::now();
    let mut tcp = pin!(tcp);
    let mut pause = pin!(sleep(head_start.silent));
    let mut tcp_began = head_start.silent.is_zero().then_some(Duration::ZERO);
    let (mut quic_error, mut tcp_error) = (None, None);
    let mut extended = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut *quic, if quic_error.is_none() => match (ended, tcp_error.take()) {
                (Ok(connection), _) => {
                    let besides = tcp_began.map(|began| begun.elapsed().saturating_sub(began));
                    return Ok(Winner::Quic(connection, besides));
                }
                (Err(quic), Some(tcp)) => return Err((quic, tcp)),
                (Err(error), None) => {
                    quic_error = Some(error);
                    tcp_began.get_or_insert(begun.elapsed());
                }
            },
            ended = &mut tcp, if tcp_began.is_some() && tcp_error.is_none() => match (ended, quic_error.take()) {
                (Ok(connection), quic) => {
                    return Ok(Winner::Tcp(connection, tcp_began.unwrap_or_default(), quic));
                }
                (Err(tcp), Some(quic)) => return Err((quic, tcp)),
                (Err(error), None) => tcp_error = Some(error),
            },
            () = &mut pause, if tcp_began.is_none() => {
                if is_heard() && !extended {
                    extended = true;
                    pause.as_mut().reset(TokioInstant::now() + head_start.lively);
                } else {
                    tcp_began = Some(begun.elapsed());
                }
            }
        }
    }
}

/// A QUIC connection in the making, given up when it is dropped.
pub(crate) struct Attempt {
    pub(crate) alternative: Http3Place,
    task: JoinHandle<Result<Connected<Client>, ConnectFailure>>,
    pub(crate) evidence: Arc<Evidence>,
    begun: Instant,
}

impl Attempt {
    /// Begins to connect to `origin` at `alternative`. `addresses` are the origin's own.
    pub(crate) fn begin(
        network: &Arc<Network>,
        origin: &Origin,
        alternative: Http3Place,
        addresses: &[SocketAddr],
    ) -> Attempt {
        let evidence = Arc::<Evidence>::default();
        let own = (alternative.host == origin.host).then(|| {
            let moved = addresses.iter().map(|address| SocketAddr::new(address.ip(), alternative.port));
            moved.collect::<Vec<_>>()
        });
        let task = {
            let (network, origin) = (Arc::clone(network), origin.clone());
            let (alternative, evidence) = (alternative.clone(), Arc::clone(&evidence));
            async move {
                let addresses = match own {
                    Some(addresses) => addresses,
                    None => {
                        let found = network.find(&origin, &alternative.host, alternative.port).await;
                        found.map_err(|error| ConnectFailure { error, blame: Blame::Server })?.addresses
                    }
                };
                network.http3(&origin, &addresses, &evidence).await
            }
        };
        Attempt { alternative, task: tokio::spawn(task), evidence, begun: instant_now() }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How many flights of packets were answered by nothing, if it is long enough ago that an answer should have
    /// come by now.
    pub(crate) fn unanswered(&self, rtt: Duration) -> Option<u32> {
        let elapsed = self.elapsed();
        let due = elapsed >= rtt + rtt / 2 + SHORTEST && !self.evidence.is_heard();
        due.then_some(if elapsed >= TWO_FLIGHTS { 2 } else { 1 })
    }

    /// Waits for the end. Nothing is lost if this is dropped before.
    pub(crate) async fn ended(&mut self) -> Result<Connected<Client>, ConnectFailure> {
        (&mut self.task).await.unwrap_or_else(|error| {
            if error.is_panic() {
                std::panic::resume_unwind(error.into_panic());
            }
            let error = Error::of_origin(ErrorKind::Connect, "the attempt to use QUIC was given up");
            Err(ConnectFailure { error, blame: Blame::Here })
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// When each would end, and how: the clock of these tests only moves when everybody waits.
    struct Race {
        quic: (u64, Result<(), &'static str>),
        tcp: (u64, Result<(), &'static str>),
        heard: u64,
        head_start: HeadStart,
    }

    /// Who won, after how many ms, and when TCP was begun.
    fn run(race: &Race) -> (String, u128, Option<u128>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let begun = TokioInstant::now();
            let began = std::cell::Cell::new(None);
            let mut quic = Box::pin(async {
                sleep(MS(race.quic.0)).await;
                race.quic.1
            });
            let tcp = async {
                began.set(Some(begun.elapsed().as_millis()));
                sleep(MS(race.tcp.0)).await;
                race.tcp.1
            };
            let is_heard = || begun.elapsed() >= MS(race.heard);
            let winner = match contest(&mut quic, tcp, race.head_start, is_heard).await {
                Ok(Winner::Quic(..)) => "quic".to_owned(),
                Ok(Winner::Tcp(_, _, None)) => "tcp".to_owned(),
                Ok(Winner::Tcp(_, _, Some(error))) => format!("tcp, {error}"),
                Err((quic, tcp)) => format!("{quic}, {tcp}"),
            };
            (winner, begun.elapsed().as_millis(), began.get())
        })
    }

    const NEVER: u64 = 1_000_000;

    #[test]
    fn tcp_is_not_begun_where_quic_answers() {
        let head_start = HeadStart::after(Some(MS(100)));
        let race = Race { quic: (104, Ok(())), tcp: (200, Ok(())), heard: 100, head_start };
        assert_eq!(run(&race), ("quic".to_owned(), 104, None));
        // Slow, but something has come.
        let race = Race { quic: (300, Ok(())), ..race };
        assert_eq!(run(&race), ("quic".to_owned(), 300, None));
        // Something has come, but nothing comes of it.
        let race = Race { quic: (NEVER, Ok(())), ..race };
        assert_eq!(run(&race), ("tcp".to_owned(), 135 + 300 + 200, Some(135 + 300)));
    }

    #[test]
    fn silence_costs_no_more_than_a_round_trip_and_50_ms() {
        for rtt in [0, 1, 5, 20, 50, 100, 350, 2000] {
            for known in [None, Some(MS(rtt))] {
                let head_start = HeadStart::after(known);
                let tcp = (2 * rtt, Ok(()));
                let race = Race { quic: (NEVER, Ok(())), tcp, heard: NEVER, head_start };
                let (winner, after, _) = run(&race);
                assert_eq!(winner, "tcp");
                assert!(after <= u128::from(3 * rtt + 50), "{rtt} {known:?}: {after}");
            }
        }
        let race =
            Race { quic: (NEVER, Ok(())), tcp: (60, Ok(())), heard: NEVER, head_start: HeadStart::NONE };
        assert_eq!(run(&race), ("tcp".to_owned(), 60, Some(0)));
    }

    #[test]
    fn quic_wins_together_too_where_it_is_faster() {
        let race = Race { quic: (35, Ok(())), tcp: (60, Ok(())), heard: 30, head_start: HeadStart::NONE };
        assert_eq!(run(&race), ("quic".to_owned(), 35, Some(0)));
    }

    #[test]
    fn failures_are_not_waited_for() {
        let head_start = HeadStart::after(None);
        let race = Race { quic: (5, Err("refused")), tcp: (60, Ok(())), heard: NEVER, head_start };
        assert_eq!(run(&race), ("tcp, refused".to_owned(), 65, Some(5)));
        let race = Race { tcp: (60, Err("reset")), ..race };
        assert_eq!(run(&race), ("refused, reset".to_owned(), 65, Some(5)));
        let race = Race { quic: (500, Ok(())), ..race };
        assert_eq!(run(&race), ("quic".to_owned(), 500, Some(50)));
        let race = Race { quic: (500, Err("late")), ..race };
        assert_eq!(run(&race), ("late, reset".to_owned(), 500, Some(50)));
    }

    #[test]
    fn the_head_start_follows_the_round_trip_time() {
        let silent = |rtt| HeadStart::after(Some(MS(rtt))).silent;
        assert_eq!((silent(0), silent(4), silent(100), silent(1000)), (MS(20), MS(20), MS(135), MS(1040)));
    }
}
