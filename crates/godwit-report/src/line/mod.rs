//! One line of a JSON access log, read without allocating: only what reports count is taken out of it.
//!
//! Keys may come in any order; unknown ones are skipped, whatever their value; of a key that comes twice the last
//! counts. A line must be one JSON object with at least `time`, `protocol`, and `status` or, of a request that was
//! never answered, an `outcome`. Lines come from clients in part (paths, names): nothing in them may panic, and nesting
//! is capped.

mod json;
#[cfg(test)]
mod tests;
mod user;

use crate::dimension::{Arm, Family, Metric, Protocol, Reuse, Tls, WhyNot};
use json::{Scanner, Value};

/// What a report wants to know of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// When it came, as the decimal digits of year, month, day, hour, minute and second.
    pub time: u64,
    /// The protocol.
    pub protocol: Protocol,
    /// The IP version.
    pub family: Family,
    /// First or reused connection.
    pub reuse: Reuse,
    /// The TLS handshake of its connection.
    pub tls: Tls,
    /// The side of the roll-out.
    pub arm: Arm,
    /// Why not HTTP/3.
    pub why_not: Option<WhyNot>,
    /// The response's status; 0 if there was none.
    pub status: u16,
    /// Whether it ended well.
    pub finished: bool,
    /// Whether it became a tunnel or a WebSocket, whose duration says nothing of latency.
    pub tunnel: bool,
    /// The response's body in bytes.
    pub size: u64,
    /// Its times in microseconds, by [`Metric::index`].
    pub times: [Option<u64>; Metric::COUNT],
    /// A hash of the user, or of the client's network if the user is not known.
    pub user: u64,
}

impl Facts {
    /// The hour of the day, 0 to 23.
    pub fn hour(&self) -> u8 {
        (self.time / 10_000 % 100).min(23) as u8
    }

    const NONE: Facts = Facts {
        time: 0,
        protocol: Protocol::Http1,
        family: Family::Unknown,
        reuse: Reuse::Unknown,
        tls: Tls::Unknown,
        arm: Arm::None,
        why_not: None,
        status: 0,
        finished: true,
        tunnel: false,
        size: 0,
        times: [None; Metric::COUNT],
        user: 0,
    };

    /// Reads one line, without its line end. `None` if it is not a line of the log.
    pub fn read(line: &[u8]) -> Option<Facts> {
        let mut facts = Facts::NONE;
        let mut client: &[u8] = b"";
        let mut has_user = false;
        let mut has_protocol = false;
        let mut has_outcome = false;
        let mut scanner = Scanner::object(line)?;
        while let Some((key, value)) = scanner.next_member()? {
            match key {
                b"time" => facts.time = time(value.text()?)?,
                b"client" => client = value.text()?,
                b"family" => facts.family = family(value),
                b"protocol" => {
                    facts.protocol = protocol(value.text()?)?;
                    has_protocol = true;
                }
                b"method" => facts.tunnel |= value.text() == Some(b"CONNECT"),
                b"status" => facts.status = u16::try_from(value.whole()?).ok()?,
                b"why_not_h3" => facts.why_not = Some(why_not(value)),
                b"user" => {
                    facts.user = user::of_name(value.text()?);
                    has_user = true;
                }
                b"arm" => facts.arm = arm(value),
                b"request" => {
                    facts.reuse = if value.whole()? <= 1 { Reuse::First } else { Reuse::Reused };
                }
                b"tls" => facts.tls = tls(value),
                b"response_bytes" => facts.size = value.whole()?,
                b"first_byte_ms" => facts.set(Metric::FirstByte, value)?,
                b"last_byte_ms" => facts.set(Metric::LastByte, value)?,
                b"delivered_ms" => facts.set(Metric::Delivered, value)?,
                b"upstream_ms" => facts.set(Metric::Upstream, value)?,
                b"last_mile_ms" => facts.set(Metric::LastMile, value)?,
                b"outcome" => {
                    facts.finished = value.text() == Some(b"ok");
                    has_outcome = true;
                }
                _ => {}
            }
        }
        if !has_user {
            facts.user = user::of_network(client);
        }
        facts.tunnel |= facts.status == 101;
        facts.complete();
        facts.finished &= facts.status != 0;
        (facts.time != 0 && has_protocol && (facts.status != 0 || has_outcome)).then_some(facts)
    }

    fn set(&mut self, metric: Metric, value: Value<'_>) -> Option<()> {
        let time = self.times.get_mut(metric.index())?;
        *time = Some(value.thousandths()?);
        Some(())
    }

    /// Works the last-mile time out where only its parts are there. What is not known to be delivered has none, whatever
    /// the protocol: the last byte is handed on long before.
    fn complete(&mut self) {
        let [last_mile, _, _, delivered, upstream] = &mut self.times;
        if last_mile.is_none() {
            *last_mile = delivered.map(|end| end.saturating_sub(upstream.unwrap_or(0)));
        }
    }
}

/// The digits of `2026-11-21T23:21:41…`.
fn time(text: &[u8]) -> Option<u64> {
    let (text, _) = text.split_at_checked(19)?;
    let mut number = 0;
    for (place, &byte) in text.iter().enumerate() {
        match (place, byte) {
            (4 | 7, b'-') | (10, b'T' | b't' | b' ') | (13 | 16, b':') => {}
            (4 | 7 | 10 | 13 | 16, _) => return None,
            (_, b'0'..=b'9') => number = number * 10 + u64::from(byte - b'0'),
            _ => return None,
        }
    }
    Some(number)
}

fn protocol(text: &[u8]) -> Option<Protocol> {
    match text {
        b"h3" => Some(Protocol::Http3),
        b"h2" => Some(Protocol::Http2),
        b"http/1.1" | b"http/1.0" => Some(Protocol::Http1),
        _ => None,
    }
}

fn family(value: Value<'_>) -> Family {
    match value.whole() {
        Some(4) => Family::V4,
        Some(6) => Family::V6,
        _ => Family::Unknown,
    }
}

fn arm(value: Value<'_>) -> Arm {
    match value.text() {
        Some(b"on") => Arm::On,
        Some(b"off") => Arm::Off,
        _ => Arm::None,
    }
}

fn tls(value: Value<'_>) -> Tls {
    match value.text() {
        Some(b"full") => Tls::Full,
        Some(b"resumed") => Tls::Resumed,
        _ => Tls::Unknown,
    }
}

fn why_not(value: Value<'_>) -> WhyNot {
    match value.text() {
        Some(b"not_advertised") => WhyNot::NotAdvertised,
        Some(b"other_address") => WhyNot::OtherAddress,
        Some(b"no_attempt") => WhyNot::NoAttempt,
        Some(b"attempt_failed") => WhyNot::AttemptFailed,
        _ => WhyNot::Unknown,
    }
}
