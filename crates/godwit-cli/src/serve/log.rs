//! One line per request: method, path, status, bytes, protocol, duration.

mod writer;

use std::fmt::Write as _;
use std::time::Instant;

use http::{Method, Request, StatusCode, Uri, Version};

use crate::output::{Style, duration, instant_now};

/// Characters of a path and query that are logged.
const LONGEST_PATH: usize = 1000;

/// Where requests are logged, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLog {
    style: Option<Style>,
}

impl RequestLog {
    /// No lines.
    pub(crate) fn off() -> RequestLog {
        RequestLog { style: None }
    }

    /// Lines on the standard output, coloured on a terminal.
    pub(crate) fn stdout() -> RequestLog {
        RequestLog { style: Some(Style::of_stdout()) }
    }

    /// Has the lines so far written, if anybody reads them.
    pub(crate) fn flush(self) {
        if self.style.is_some() {
            writer::flush();
        }
    }

    /// Begins the line of a request; `None` when nothing is logged.
    pub(crate) fn entry<B>(self, request: &Request<B>) -> Option<Entry> {
        let style = self.style?;
        Some(Entry {
            style,
            begun: instant_now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            status: StatusCode::OK,
            bytes: 0,
        })
    }
}

/// A line to be. It is written when dropped, once the response's body is done with.
#[derive(Debug)]
pub(crate) struct Entry {
    style: Style,
    begun: Instant,
    method: Method,
    uri: Uri,
    version: Version,
    status: StatusCode,
    bytes: u64,
}

impl Entry {
    pub(crate) fn answered(mut self, status: StatusCode) -> Entry {
        self.status = status;
        self
    }

    /// Counts bytes of the body.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn line(&self, elapsed: &str) -> String {
        let status = self.status.as_str();
        let status = match self.status.as_u16() {
            ..300 => self.style.green(status),
            300..400 => self.style.bold(status),
            400..500 => self.style.yellow(status),
            500.. => self.style.red(status),
        };
        let mut line = format!("{} ", self.method);
        // A terminal must not take a client's bytes for commands.
        let path = self.uri.path_and_query().map_or("*", |path| path.as_str());
        for character in path.chars().take(LONGEST_PATH) {
            let _ = if character.is_ascii_graphic() || character.is_alphanumeric() {
                line.write_char(character)
            } else {
                write!(line, "{}", character.escape_unicode())
            };
        }
        if path.chars().nth(LONGEST_PATH).is_some() {
            line.push('…');
        }
        let protocol = match self.version {
            Version::HTTP_3 => "h3",
            Version::HTTP_2 => "h2",
            Version::HTTP_10 => "http/1.0",
            _ => "http/1.1",
        };
        let _ = write!(line, " {status} {} {protocol} {}", self.bytes, self.style.dim(elapsed));
        line
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        writer::write_line(self.line(&duration(self.begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, version: Version) -> Entry {
        let request = Request::builder().uri(path).version(version).body(()).unwrap();
        RequestLog { style: Some(Style::PLAIN) }.entry(&request).unwrap()
    }

    #[test]
    fn a_line_has_its_six_fields() {
        let mut entry = entry("/a.txt?b=c", Version::HTTP_3).answered(StatusCode::PARTIAL_CONTENT);
        entry.add(10);
        entry.add(2);
        assert_eq!(entry.line("0.31ms"), "GET /a.txt?b=c 206 12 h3 0.31ms");
    }

    #[test]
    fn a_path_cannot_write_control_characters() {
        let line = entry("/a\u{9b}31m\u{e9}", Version::HTTP_11).line("1.0s");
        assert_eq!(line, "GET /a\\u{9b}31m\u{e9} 200 0 http/1.1 1.0s");
    }

    #[test]
    fn a_path_without_end_is_cut() {
        let line = entry(&format!("/{}", "a".repeat(5000)), Version::HTTP_3).line("1.0s");
        assert!(line.len() < 1100 && line.contains("aaa… 200 0 h3"), "{line}");
    }

    #[test]
    fn nothing_is_kept_when_the_log_is_off() {
        assert!(RequestLog::off().entry(&Request::new(())).is_none());
    }
}
