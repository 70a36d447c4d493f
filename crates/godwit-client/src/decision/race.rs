//! One connection in the making: QUIC, which has begun, and TCP, which begins when it must.
//!
//! TCP begins when the head start is over, when QUIC has failed, or when the network says that nothing gets through (ICMP: that
//! proves nothing, so QUIC goes on). If anything was heard of the server over UDP by then, QUIC gets more time. Whoever is there
//! first is used, except that TCP, if it is first and something has been heard over UDP, waits one round trip more for QUIC:
//! then UDP is not blocked, and a packet was lost.

use std::time::Duration;

use super::head_start::HeadStart;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// Something came back over UDP.
    Heard,
    /// The network says that what was sent over UDP does not arrive.
    Unreachable,
    QuicReady,
    QuicFailed,
    TcpReady,
    TcpFailed,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until something happens, or until this time.
    Wait(Option<Duration>),
    BeginTcp,
    UseQuic,
    UseTcp,
    /// Both have failed.
    GiveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// Since when: `None` if it has not begun.
    Running(Option<Duration>),
    /// When it was begun, and when it was there.
    Ready(Duration, Duration),
    Failed,
}

/// The race. Times are counted from the beginning of QUIC.
#[derive(Debug)]
pub(crate) struct Race {
    head_start: HeadStart,
    quic: Lane,
    tcp: Lane,
    heard: bool,
    unreachable: bool,
    /// When TCP begins, if nothing happens.
    tcp_at: Duration,
    extended: bool,
    tcp_began: Option<Duration>,
}

impl Race {
    pub(crate) fn new(head_start: HeadStart) -> Race {
        Race {
            head_start,
            quic: Lane::Running(Some(Duration::ZERO)),
            tcp: Lane::Running(None),
            heard: false,
            unreachable: false,
            tcp_at: head_start.silent,
            extended: false,
            tcp_began: None,
        }
    }

    /// When TCP was begun, if it was.
    pub(crate) fn tcp_began(&self) -> Option<Duration> {
        self.tcp_began
    }

    /// Something has happened at `now`.
    pub(crate) fn on(&mut self, now: Duration, what: Happening) {
        match what {
            Happening::Heard => self.heard = true,
            Happening::Unreachable => self.unreachable = true,
            Happening::QuicReady => self.quic = Lane::Ready(Duration::ZERO, now),
            Happening::QuicFailed => self.quic = Lane::Failed,
            Happening::TcpReady => self.tcp = Lane::Ready(self.tcp_began.unwrap_or(now), now),
            Happening::TcpFailed => self.tcp = Lane::Failed,
        }
    }

    /// What is to be done at `now`.
    pub(crate) fn step(&mut self, now: Duration) -> Step {
        match (self.quic, self.tcp) {
            (Lane::Ready(..), _) => Step::UseQuic,
            (Lane::Failed, Lane::Failed) => Step::GiveUp,
            (Lane::Failed, Lane::Ready(..)) => Step::UseTcp,
            (_, Lane::Running(None)) => self.wait_to_begin(now),
            (Lane::Running(_), Lane::Ready(began, ready)) => {
                // A handshake over TCP, with TLS, is two round trips.
                let hold = self.head_start.hold.unwrap_or(ready.saturating_sub(began) / 2);
                let until = if self.heard { ready.saturating_add(hold) } else { ready };
                if now >= until { Step::UseTcp } else { Step::Wait(Some(until)) }
            }
            (_, Lane::Running(Some(_)) | Lane::Failed) => Step::Wait(None),
        }
    }

    fn wait_to_begin(&mut self, now: Duration) -> Step {
        let is_hopeless = self.quic == Lane::Failed || (self.unreachable && !self.heard);
        if !is_hopeless && now >= self.tcp_at && self.heard && !self.extended {
            self.extended = true;
            self.tcp_at = now.saturating_add(self.head_start.lively);
        }
        if !is_hopeless && now < self.tcp_at {
            return Step::Wait(Some(self.tcp_at));
        }
        self.tcp = Lane::Running(Some(now));
        self.tcp_began = Some(now);
        Step::BeginTcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const NEVER: u64 = 1_000_000;

    fn rounded_up(time: Duration) -> u64 {
        u64::try_from(time.as_micros().div_ceil(1000)).unwrap()
    }

    /// When each ends, after it was begun, and how.
    struct Course {
        quic: (u64, bool),
        tcp: (u64, bool),
        heard: u64,
        unreachable: u64,
        head_start: HeadStart,
    }

    impl Course {
        fn new(quic: (u64, bool), tcp: (u64, bool), heard: u64, head_start: HeadStart) -> Course {
            Course { quic, tcp, heard, unreachable: NEVER, head_start }
        }

        /// What was done in the end, when, and when TCP was begun.
        fn run(&self) -> (Step, u64, Option<u64>) {
            let mut race = Race::new(self.head_start);
            let (mut now, mut tcp_ends) = (0, NEVER);
            loop {
                let ends = |ok, ready, failed| if ok { ready } else { failed };
                let happenings = [
                    (self.heard, Happening::Heard),
                    (self.unreachable, Happening::Unreachable),
                    (self.quic.0, ends(self.quic.1, Happening::QuicReady, Happening::QuicFailed)),
                    (tcp_ends, ends(self.tcp.1, Happening::TcpReady, Happening::TcpFailed)),
                ];
                for (_, what) in happenings.iter().filter(|(at, _)| *at == now) {
                    race.on(MS(now), *what);
                }
                let wait = match race.step(MS(now)) {
                    Step::Wait(until) => until.map_or(NEVER, rounded_up),
                    Step::BeginTcp => {
                        tcp_ends = now + self.tcp.0;
                        continue;
                    }
                    end => {
                        let began = race.tcp_began().map(|began| u64::try_from(began.as_millis()).unwrap());
                        return (end, now, began);
                    }
                };
                let next = happenings.iter().map(|(at, _)| *at).filter(|at| *at > now);
                now = next.chain([wait]).min().unwrap();
                assert!(now < NEVER, "nothing happens any more");
            }
        }
    }

    #[test]
    fn tcp_is_not_begun_where_quic_answers() {
        let head_start = HeadStart::after(Some(MS(100)));
        let course = Course::new((104, true), (200, true), 100, head_start);
        assert_eq!(course.run(), (Step::UseQuic, 104, None));
        // Slow, but something has come.
        let course = Course { quic: (300, true), ..course };
        assert_eq!(course.run(), (Step::UseQuic, 300, None));
        // Something has come, but nothing comes of it.
        let course = Course { quic: (NEVER, true), ..course };
        assert_eq!(course.run(), (Step::UseTcp, 135 + 300 + 200 + 100, Some(135 + 300)));
    }

    #[test]
    fn silence_costs_no_more_than_a_round_trip_and_50_ms() {
        for rtt in [0, 1, 5, 20, 50, 100, 350, 425, 725, 2300] {
            for known in [None, Some(MS(rtt))] {
                let tcp = (2 * rtt, true);
                let (end, after, _) = Course::new((NEVER, true), tcp, NEVER, HeadStart::after(known)).run();
                assert_eq!(end, Step::UseTcp);
                assert!(after <= 3 * rtt + 50, "{rtt} {known:?}: {after}");
            }
        }
        let course = Course::new((NEVER, true), (60, true), NEVER, HeadStart::NONE);
        assert_eq!(course.run(), (Step::UseTcp, 60, Some(0)));
    }

    #[test]
    fn what_was_heard_of_gets_a_round_trip_more() {
        let head_start = HeadStart::after(Some(MS(100)));
        // The first answer came late, when TCP had begun.
        let course = Course::new((380, true), (200, true), 300, head_start);
        assert_eq!(course.run(), (Step::UseQuic, 380, Some(135)));
        let course = Course::new((NEVER, true), (200, true), 300, head_start);
        assert_eq!(course.run(), (Step::UseTcp, 135 + 200 + 100, Some(135)));
        let course = Course::new((NEVER, true), (200, true), NEVER, head_start);
        assert_eq!(course.run(), (Step::UseTcp, 135 + 200, Some(135)));
    }

    #[test]
    fn what_the_network_says_ends_the_head_start_and_no_more() {
        let course = Course {
            unreachable: 10,
            ..Course::new((150, true), (200, true), NEVER, HeadStart::after(Some(MS(100))))
        };
        assert_eq!(course.run(), (Step::UseQuic, 150, Some(10)));
        let course = Course { quic: (NEVER, true), ..course };
        assert_eq!(course.run(), (Step::UseTcp, 210, Some(10)));
    }

    #[test]
    fn failures_are_not_waited_for() {
        let head_start = HeadStart::after(None);
        let course = Course::new((5, false), (60, true), NEVER, head_start);
        assert_eq!(course.run(), (Step::UseTcp, 65, Some(5)));
        let course = Course { tcp: (60, false), ..course };
        assert_eq!(course.run(), (Step::GiveUp, 65, Some(5)));
        let course = Course { quic: (500, true), ..course };
        assert_eq!(course.run(), (Step::UseQuic, 500, Some(50)));
        let course = Course { quic: (500, false), ..course };
        assert_eq!(course.run(), (Step::GiveUp, 500, Some(50)));
    }
}
