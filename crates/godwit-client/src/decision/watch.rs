//! A connection over UDP that is in use, watched: when nothing comes, the server is asked for a sign of life, and when that
//! does not come either, the way is suspected to be dead. That takes a few probe timeouts (RFC 9002 section 6.2.1), where the
//! idle timeout takes half a minute.
//!
//! Silence alone means nothing: a server may think, and a program may leave unread what has come. Only what was asked and
//! is not answered does.

use std::time::Duration;

/// The shortest silence before the server is asked: radios and busy machines pause as long now and then.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(150);
/// The longest pause between two questions in a silence in which all were answered.
const LONGEST_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer is waited for at least, however near the server is.
const SHORTEST_ANSWER: Duration = Duration::from_millis(300);
/// An acknowledgement may be held back so long (RFC 9000 section 18.2, the default).
const ACK_DELAY: Duration = Duration::from_millis(25);
/// The finest step of a clock (RFC 9002 section 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// A connection's figures at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// UDP datagrams received so far.
    pub(crate) received: u64,
    /// Smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// Its mean deviation.
    pub(crate) rtt_variance: Duration,
    /// Bytes sent that are not acknowledged.
    pub(crate) in_flight: u64,
}

/// What is to be done, and when to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Wait(Duration),
    /// Ask the server for a sign of life.
    Ask(Duration),
    /// Nothing has come back that was due: another port and another protocol are to be tried. Said once in a silence.
    Suspect(Duration),
    /// Something has come after all. Said once after a suspicion.
    Recovered(Duration),
}

/// A connection that is watched. Times are counted from any moment.
#[derive(Debug)]
pub(crate) struct Watch {
    received: u64,
    /// When something was seen to have come.
    heard: Duration,
    /// Since when something is unanswered.
    unanswered: Option<Duration>,
    /// How long a silence may be before the server is asked; it grows as questions are answered.
    questions: u32,
    suspicious: bool,
    /// As long as nothing has ever come: how long that may take.
    first: Option<Duration>,
}

impl Watch {
    /// Begins to watch. `first`: nothing has ever come, as on a connection that goes ahead of its handshake, and should
    /// within this time.
    pub(crate) fn new(now: Duration, sample: &Sample, first: Option<Duration>) -> Watch {
        Watch {
            received: sample.received,
            heard: now,
            unanswered: None,
            questions: 0,
            suspicious: false,
            first: first.filter(|_| sample.received == 0),
        }
    }

    /// Looks at the connection.
    pub(crate) fn look(&mut self, now: Duration, sample: &Sample) -> Step {
        let pto = probe_timeout(sample);
        if sample.received != self.received {
            return self.on_heard(now, sample, pto);
        }
        if let Some(first) = self.first {
            return self.suspect_after(now, self.heard.saturating_add(first), pto);
        }
        let asked = self.unanswered.or_else(|| (sample.in_flight > 0).then_some(now));
        self.unanswered = asked;
        if let Some(asked) = asked {
            return self.suspect_after(now, asked.saturating_add(answer_time(sample)), pto);
        }
        let ask_at = self.heard.saturating_add(patience(pto, self.questions));
        if now < ask_at {
            return Step::Wait(ask_at.saturating_sub(now));
        }
        self.unanswered = Some(now);
        self.questions = self.questions.saturating_add(1);
        Step::Ask(answer_time(sample))
    }

    fn on_heard(&mut self, now: Duration, sample: &Sample, pto: Duration) -> Step {
        // A datagram or two are what answers a question: that does not make the next one come sooner.
        let answered = self.unanswered.is_some() && sample.received <= self.received.saturating_add(2);
        self.questions = if answered { self.questions } else { 0 };
        (self.received, self.heard, self.unanswered, self.first) = (sample.received, now, None, None);
        // Half of it: a silence that began just after this look is noticed early in the second half.
        let next = patience(pto, self.questions) / 2;
        if std::mem::take(&mut self.suspicious) { Step::Recovered(next) } else { Step::Wait(next) }
    }

    fn suspect_after(&mut self, now: Duration, due: Duration, pto: Duration) -> Step {
        match now < due {
            true => Step::Wait(due.saturating_sub(now).min(pto.max(SHORTEST_PATIENCE))),
            false if self.suspicious => Step::Wait(pto.max(SHORTEST_PATIENCE)),
            false => {
                self.suspicious = true;
                Step::Suspect(pto.max(SHORTEST_PATIENCE))
            }
        }
    }
}

/// The probe timeout, but no more than one and a half round trips: of a young connection the deviation is a guess (RFC 9002
/// section 5.3), and a wrong suspicion costs little.
fn probe_timeout(sample: &Sample) -> Duration {
    let deviation = (sample.rtt_variance * 4).clamp(GRANULARITY, (sample.rtt / 2).max(GRANULARITY));
    sample.rtt + deviation + ACK_DELAY
}

/// How long an answer is waited for.
fn answer_time(sample: &Sample) -> Duration {
    (probe_timeout(sample) * 2).max(SHORTEST_ANSWER)
}

/// How long a silence may be in which so many questions were answered.
fn patience(pto: Duration, questions: u32) -> Duration {
    let grown = pto.max(SHORTEST_PATIENCE).saturating_mul(1_u32.checked_shl(questions).unwrap_or(u32::MAX));
    grown.min(LONGEST_PATIENCE.max(pto))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Steps through a connection on which datagrams come until `dies`, and again from `revives` on; questions are answered
    /// after a round trip while it lives. Returns when what was said.
    fn run(rtt: u64, data_until: u64, dies: u64, revives: u64, until: u64) -> Vec<(u64, &'static str)> {
        let alive = |at: u64| at < dies || at >= revives;
        let sample = |received| Sample { received, rtt: MS(rtt), rtt_variance: MS(rtt / 16), in_flight: 0 };
        let (mut at, mut received, mut answer) = (0, 1, None);
        let mut watch = Watch::new(MS(0), &sample(received), None);
        let mut said = Vec::new();
        while at < until {
            if at < data_until && alive(at) {
                received += 10;
            }
            received += u64::from(answer.take_if(|due| *due <= at).is_some());
            let wait = match watch.look(MS(at), &sample(received)) {
                Step::Wait(wait) => wait,
                Step::Ask(wait) => {
                    said.push((at, "ask"));
                    answer = alive(at).then_some(at + rtt);
                    wait
                }
                Step::Suspect(wait) => {
                    said.push((at, "suspect"));
                    wait
                }
                Step::Recovered(wait) => {
                    said.push((at, "recovered"));
                    wait
                }
            };
            assert!(!wait.is_zero(), "looks all the time at {at}");
            at += u64::try_from(wait.as_millis()).unwrap().max(1);
        }
        said
    }

    const NEVER: u64 = u64::MAX;

    #[test]
    fn what_keeps_coming_is_left_alone() {
        assert_eq!(run(50, NEVER, NEVER, NEVER, 60_000), []);
    }

    #[test]
    fn a_dead_way_is_suspected_within_a_few_round_trips() {
        for (rtt, most) in [(1, 700), (20, 700), (50, 800), (350, 2000), (725, 4000)] {
            let said = run(rtt, NEVER, 5000, NEVER, 20_000);
            let [(_, "ask"), (at, "suspect")] = said[..] else { panic!("{rtt}: {said:?}") };
            assert!(at - 5000 <= most, "{rtt} ms: {} ms", at - 5000);
        }
    }

    #[test]
    fn a_server_that_thinks_is_asked_more_and_more_rarely_and_not_suspected() {
        let said = run(50, 1000, NEVER, NEVER, 120_000);
        assert!(said.iter().all(|(_, what)| *what == "ask"), "{said:?}");
        assert!((12..=20).contains(&said.len()), "{said:?}");
    }

    #[test]
    fn a_way_that_comes_back_is_told_once() {
        let said = run(50, NEVER, 5000, 9000, 20_000);
        let words: Vec<_> = said.iter().map(|(_, what)| *what).collect();
        assert_eq!(words, ["ask", "suspect", "recovered"]);
    }

    #[test]
    fn who_waits_for_an_acknowledgement_need_not_ask() {
        let sample = |in_flight| Sample { received: 5, rtt: MS(100), rtt_variance: MS(5), in_flight };
        let mut watch = Watch::new(MS(0), &sample(0), None);
        assert!(matches!(watch.look(MS(10), &sample(1200)), Step::Wait(_)));
        // Declared lost, and not acknowledged all the same.
        assert!(matches!(watch.look(MS(200), &sample(0)), Step::Wait(_)));
        assert!(matches!(watch.look(MS(310), &sample(0)), Step::Suspect(_)));
        assert!(matches!(watch.look(MS(900), &sample(0)), Step::Wait(_)), "said once");
    }

    #[test]
    fn who_goes_ahead_of_the_handshake_waits_as_long_as_it_should_take() {
        let sample = |received| Sample { received, rtt: MS(333), rtt_variance: MS(166), in_flight: 1200 };
        let mut watch = Watch::new(MS(0), &sample(0), Some(MS(60)));
        assert_eq!(watch.look(MS(0), &sample(0)), Step::Wait(MS(60)));
        assert!(matches!(watch.look(MS(60), &sample(0)), Step::Suspect(_)));
        assert!(matches!(watch.look(MS(80), &sample(1)), Step::Recovered(_)));
        assert!(
            matches!(watch.look(MS(400), &sample(1)), Step::Wait(_)),
            "the first answer is another matter"
        );
    }
}
