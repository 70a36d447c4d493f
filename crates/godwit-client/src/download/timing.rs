//! How long a download took.

use std::fmt;
use std::time::{Duration, Instant};

use godwit_text::{duration, instant_now, size};
use http::Version;

/// How long things took, counted from the beginning of the download. As text it is a line for a person.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timing {
    pub(super) begun: Instant,
    /// DNS and handshake, if a connection was made.
    pub connect: Option<(Duration, Duration)>,
    /// When the last response's head was there.
    pub first_byte: Option<Duration>,
    /// All of it.
    pub total: Duration,
    /// Bytes of the body that came.
    pub bytes: u64,
    /// The protocol of the last request.
    pub version: Option<Version>,
}

impl Timing {
    /// Begins now.
    pub fn begin() -> Timing {
        let (connect, first_byte, version) = (None, None, None);
        Timing { begun: instant_now(), connect, first_byte, total: Duration::ZERO, bytes: 0, version }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connect {
            Some((dns, handshake)) => {
                write!(formatter, "dns {}, handshake {}", duration(dns), duration(handshake))?;
            }
            None => formatter.write_str("no new connection")?,
        }
        if let Some(first_byte) = self.first_byte {
            write!(formatter, ", first byte {}", duration(first_byte))?;
        }
        write!(formatter, ", total {}, {}", duration(self.total), size(self.bytes))?;
        if let Some(rate) = rate_in_words(self.bytes, self.total) {
            write!(formatter, ", {rate}")?;
        }
        self.version.map_or(Ok(()), |version| write!(formatter, ", {}", version_name(version)))
    }
}

/// So many bytes in so much time, in bytes per second (`1.5 MiB/s`), where there is enough to divide.
#[must_use]
pub fn rate_in_words(bytes: u64, elapsed: Duration) -> Option<String> {
    let seconds = elapsed.as_secs_f64();
    (bytes > 0 && seconds > 0.0).then(|| format!("{}/s", size((bytes as f64 / seconds) as u64)))
}

/// `HTTP/3`, `HTTP/2`, `HTTP/1.1`, `HTTP/1.0`.
#[must_use]
pub fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known() {
        let mut timing = Timing::begin();
        timing.total = Duration::from_millis(500);
        assert_eq!(timing.to_string(), "no new connection, total 500ms, 0 B");
        timing.connect = Some((Duration::from_millis(10), Duration::from_millis(30)));
        timing.first_byte = Some(Duration::from_millis(70));
        (timing.bytes, timing.version) = (1 << 20, Some(Version::HTTP_3));
        assert_eq!(
            timing.to_string(),
            "dns 10ms, handshake 30ms, first byte 70ms, total 500ms, 1 MiB, 2 MiB/s, HTTP/3"
        );
    }
}
