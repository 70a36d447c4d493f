//! PING: something that the peer has to acknowledge when there is nothing to say (RFC 9000 section 19.2), and that
//! keeps a connection alive (section 10.1.2).

use crate::packet::PacketBuilder;
use crate::part::{NoToken, Part, Silence};
use godwit_base::Time;
use godwit_wire::Frame;
use std::time::Duration;

/// PINGs that keep a connection alive are no closer together than this, whatever was asked for: each is answered, and
/// the answer begins the next silence.
const KEEP_ALIVE_MIN: Duration = Duration::from_millis(10);

/// Whether a PING is to be sent, and when the next one is.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    due: bool,
    keep_alive: Option<Duration>,
}

impl Ping {
    /// One is to be sent.
    pub(crate) fn send(&mut self) {
        self.due = true;
    }

    /// One is to be sent whenever nothing was heard for so long.
    pub(crate) fn set_keep_alive(&mut self, interval: Option<Duration>) {
        self.keep_alive = interval;
    }
}

impl Part for Ping {
    type Token = NoToken;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.due
    }

    fn write_frames<T: From<NoToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if packet.put_once(&Frame::Ping).is_ok() {
            self.due = false;
        }
    }

    fn deadline(&self, silence: &Silence) -> Option<Time> {
        // One that waits for window or credit is enough, and so is one on its way.
        let interval = self.keep_alive.filter(|_| !silence.awaits_answer && !self.due)?;
        Some(silence.since + interval.max(KEEP_ALIVE_MIN))
    }

    fn on_timeout(&mut self, _now: Time) {
        self.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeping_alive_has_a_pace() {
        let (mut ping, silence) = (Ping::default(), Silence { since: Time::ZERO, awaits_answer: false });
        ping.set_keep_alive(Some(Duration::ZERO));
        assert_eq!(ping.deadline(&silence), Some(Time::ZERO + KEEP_ALIVE_MIN));
        ping.set_keep_alive(Some(Duration::MAX));
        assert_eq!(ping.deadline(&silence), Some(Time::MAX));
        assert_eq!(ping.deadline(&Silence { awaits_answer: true, ..silence }), None);
        ping.on_timeout(Time::MAX);
        assert_eq!((ping.wants_to_send(), ping.deadline(&silence)), (true, None));
    }
}
