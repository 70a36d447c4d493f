//! QUIC and TCP raced, as [`Race`] has it: the driver. Who loses may go on, and what it meets is evidence for the next time.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use godwit::http3::Client;
use godwit_text::instant_now;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant as TokioInstant, sleep_until};

use crate::connect::Blame;
use crate::connect::quic::Evidence;
use crate::decision::head_start::{HeadStart, SHORTEST};
use crate::decision::lesson::Sight;
use crate::decision::race::{Happening, Race, Step};
use crate::error::{Error, ErrorKind};
use crate::memory::Http3Place;
use crate::network::{ConnectFailure, Connected, Network};
use crate::target::Origin;

/// What is lost within less time than this may be lost for one and the same reason.
const INDEPENDENT: Duration = Duration::from_millis(2500);

/// Who won.
pub(crate) enum Winner<Q, T, E> {
    /// QUIC, and how long TCP had been tried besides.
    Quic(Q, Option<Duration>),
    /// TCP, when it was begun, and why QUIC has failed, if it has.
    Tcp(T, Duration, Option<E>),
}

/// Races `quic`, which has begun, against `tcp`, which begins when it is first polled. `seen` tells of QUIC.
///
/// # Errors
/// Both errors, if both fail: that of TCP last.
pub(crate) async fn contest<Q, T, E>(
    quic: &mut (impl Future<Output = Result<Q, E>> + Unpin),
    tcp: impl Future<Output = Result<T, E>>,
    head_start: HeadStart,
    mut seen: watch::Receiver<Sight>,
) -> Result<Winner<Q, T, E>, (E, E)> {
    let begun = TokioInstant::now();
    let mut race = Race::new(head_start);
    let mut tcp = pin!(tcp);
    let (mut from_quic, mut from_tcp) = (None, None);
    let mut is_followed = true;
    loop {
        let mut until = None;
        match race.step(begun.elapsed()) {
            Step::BeginTcp => continue,
            Step::Wait(time) => until = time,
            Step::UseQuic => {
                if let Some(Ok(connection)) = from_quic.take() {
                    let besides = race.tcp_began().map(|began| begun.elapsed().saturating_sub(began));
                    return Ok(Winner::Quic(connection, besides));
                }
            }
            Step::UseTcp => {
                if let Some(Ok(connection)) = from_tcp.take() {
                    let began = race.tcp_began().unwrap_or_default();
                    return Ok(Winner::Tcp(connection, began, from_quic.and_then(Result::err)));
                }
            }
            Step::GiveUp => {
                if let (Some(Err(quic)), Some(Err(tcp))) = (from_quic.take(), from_tcp.take()) {
                    return Err((quic, tcp));
                }
            }
        }
        let pause = async {
            match until {
                Some(until) => sleep_until(begun + until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = &mut *quic, if from_quic.is_none() => {
                race.on(begun.elapsed(), if ended.is_ok() { Happening::QuicReady } else { Happening::QuicFailed });
                from_quic = Some(ended);
            }
            ended = &mut tcp, if race.tcp_began().is_some() && from_tcp.is_none() => {
                race.on(begun.elapsed(), if ended.is_ok() { Happening::TcpReady } else { Happening::TcpFailed });
                from_tcp = Some(ended);
            }
            changed = seen.changed(), if is_followed => {
                is_followed = changed.is_ok();
                let sight = *seen.borrow_and_update();
                if sight.heard {
                    race.on(begun.elapsed(), Happening::Heard);
                }
                if sight.unreachable.is_some() {
                    race.on(begun.elapsed(), Happening::Unreachable);
                }
            }
            () = pause => {}
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
    /// Begins to connect to `origin` at `alternative`. `addresses` are the origin's own; `rtt`: if it is known.
    pub(crate) fn begin(
        network: &Arc<Network>,
        origin: &Origin,
        alternative: Http3Place,
        addresses: &[SocketAddr],
        rtt: Option<Duration>,
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
                        found
                            .map_err(|error| ConnectFailure { error, blame: Blame::Server, retry: None })?
                            .addresses
                    }
                };
                network.http3(&origin, &addresses, &evidence, rtt).await
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

    /// What was seen of it, where an answer takes `rtt`: flights only, if it is long enough ago that an answer should have come
    /// by now.
    pub(crate) fn sight(&self, rtt: Duration) -> Sight {
        let sight = self.evidence.sight();
        let elapsed = self.elapsed();
        let most = match elapsed >= rtt + rtt / 2 + SHORTEST {
            true if elapsed >= INDEPENDENT => 2,
            due => u32::from(due),
        };
        Sight { flights: sight.flights.min(most), ..sight }
    }

    /// Waits for the end. Nothing is lost if this is dropped before.
    pub(crate) async fn ended(&mut self) -> Result<Connected<Client>, ConnectFailure> {
        (&mut self.task).await.unwrap_or_else(|error| {
            if error.is_panic() {
                std::panic::resume_unwind(error.into_panic());
            }
            let error = Error::of_origin(ErrorKind::Connect, "the attempt to use QUIC was given up");
            Err(ConnectFailure { error, blame: Blame::Here, retry: None })
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}
