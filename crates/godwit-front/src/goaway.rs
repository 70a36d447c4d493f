//! The end of an HTTP/2 connection whose client has been told so.
//!
//! With the GOAWAY goes a PING, and a client that is there answers. Until it does, it is not known which requests
//! are on their way, so the connection stays. A client that has gone without a word would keep it, and with it the
//! end of the server, to the limit.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::client::tcp::Meter;
use godwit_body::Progress;

/// How long a client may be silent after the PING: it may be in a tunnel, or on its way from one network to another.
/// Data before it may be slow to arrive: while the client's system acknowledges some of that, it is not silent.
const ANSWER: Duration = Duration::from_secs(10);

/// A client that was told.
pub(super) struct GoawayWait {
    /// Bytes that had come from it by then.
    read: u64,
    /// Bytes that it has acknowledged, and since when there have been no more.
    acknowledged: u64,
    silent_since: Instant,
}

impl GoawayWait {
    pub(super) fn new(pace: &Progress, meter: &Meter) -> GoawayWait {
        GoawayWait {
            read: pace.bytes_read(),
            acknowledged: acknowledged(meter),
            silent_since: Instant::now(),
        }
    }

    /// Whether nobody is there any more.
    pub(super) fn is_unanswered(&mut self, pace: &Progress, meter: &Arc<Meter>) -> bool {
        self.is_silent(pace.bytes_read(), acknowledged(meter))
    }

    fn is_silent(&mut self, read: u64, acknowledged: u64) -> bool {
        if acknowledged != self.acknowledged {
            (self.acknowledged, self.silent_since) = (acknowledged, Instant::now());
        }
        read == self.read && self.silent_since.elapsed() >= ANSWER
    }
}

fn acknowledged(meter: &Meter) -> u64 {
    meter.info().map_or(0, |info| info.bytes_acked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_and_takes_nothing_has_gone() {
        let told = || GoawayWait { read: 100, acknowledged: 1000, silent_since: Instant::now() };
        let second = || tokio::time::sleep(Duration::from_secs(1));
        let (mut gone, mut slow, mut there) = (told(), told(), told());
        for at in 1..60 {
            second().await;
            assert_eq!(gone.is_silent(100, 1000), at >= 10, "{at}");
            assert!(!slow.is_silent(100, 1000 + at / 3), "{at}");
            assert!(!there.is_silent(117, 1000), "an exchange may take its time: {at}");
        }
    }
}
