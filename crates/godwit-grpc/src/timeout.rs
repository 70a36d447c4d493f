//! The header `grpc-timeout`: how long a call may take, as gRPC writes it: at most eight digits and a unit.

use http::HeaderMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// When a call is over, if ever.
#[derive(Debug, Default)]
pub(crate) struct Limit(Option<Pin<Box<Sleep>>>);

impl Limit {
    /// So long from now.
    pub(crate) fn new(time: Option<Duration>) -> Limit {
        Limit(time.map(|time| Box::pin(sleep(time))))
    }

    /// Whether it is, by the clock: a timer tells so a little later, and the other end, whose time is over as well, may be heard of
    /// in between.
    pub(crate) fn has_passed(&self) -> bool {
        self.0.as_ref().is_some_and(|sleep| sleep.deadline() <= Instant::now())
    }

    /// Ready when it is.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// The time that a call has, if it is limited.
///
/// # Errors
/// If the header is there and makes no sense.
pub(crate) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Malformed> {
    headers.get("grpc-timeout").map(|value| parse(value.as_bytes()).ok_or(Malformed)).transpose()
}

/// A timeout that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number.saturating_mul(3600)),
        b'M' => Duration::from_secs(number.saturating_mul(60)),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_their_letters() {
        for (text, expected) in [
            ("2H", Duration::from_secs(7200)),
            ("3M", Duration::from_secs(180)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("0m", Duration::ZERO),
            ("00000250m", Duration::from_millis(250)),
            ("82u", Duration::from_micros(82)),
            ("7n", Duration::from_nanos(7)),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in ["", "S", "123456789S", "1s", "1", "-1S", "+1S", "1 S", "1.5S", "\u{661}S"] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", http::HeaderValue::from_bytes(text.as_bytes()).unwrap());
            assert_eq!(timeout(&headers), Err(Malformed), "{text}");
        }
        assert_eq!(timeout(&HeaderMap::new()), Ok(None));
    }
}
