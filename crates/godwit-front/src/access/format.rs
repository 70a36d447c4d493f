//! Lines for people and for old tools. (JSON is the business of [`godwit_report::record`].)

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use godwit_report::record::{ClientAddress, Record, shorten};
use http::{StatusCode, Version};

use super::entry::Entry;
use godwit_text::{Style, duration};

/// Characters of a path and query that a person is shown.
const LONGEST_PATH: usize = 1000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Apache's combined format, and the protocol at the end:
/// `192.0.2.7 - - [21/Nov/2026:23:21:41 +0000] "GET /x HTTP/3.0" 200 123 "-" "agent" h3`.
pub(super) fn combined(record: &Record<'_>, version: Version, line: &mut Vec<u8>) {
    // Writing into memory does not fail.
    let _ = match record.client {
        Some(ClientAddress::Full(address) | ClientAddress::Prefix(address)) => write!(line, "{address}"),
        None => write!(line, "-"),
    };
    line.extend_from_slice(b" - - [");
    write_date(line, record.time_ms);
    let _ = write!(line, "] \"{} ", shorten(record.request.method));
    quoted(line, &shorten(record.request.path));
    let _ = match record.status {
        Some(status) => write!(line, " {version:?}\" {status} "),
        None => write!(line, " {version:?}\" - "),
    };
    match record.response.bytes {
        0 => line.push(b'-'),
        bytes => drop(write!(line, "{bytes}")),
    }
    for field in [record.referer, record.user_agent] {
        line.extend_from_slice(b" \"");
        quoted(line, &shorten(field.unwrap_or("-")));
        line.push(b'"');
    }
    let _ = writeln!(line, " {}", record.request.protocol.name());
}

/// `21/Nov/2026:23:21:41 +0000`.
fn write_date(line: &mut Vec<u8>, unix_ms: u64) {
    let mut text = Vec::new();
    godwit_report::record::write_time(&mut text, unix_ms);
    // 2026-11-21T23:21:41.123Z
    let text = String::from_utf8_lossy(&text);
    let mut parts = text.split(['-', 'T', '.']);
    let (year, month, day, time) = (parts.next(), parts.next(), parts.next(), parts.next());
    if let (Some(year), Some(month), Some(day), Some(time)) = (year, month, day, time) {
        let month = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
        let _ = write!(line, "{day}/{}/{year}:{time} +0000", month.copied().unwrap_or("Jan"));
    }
}

/// What a client has sent must not end its field or the line.
fn quoted(line: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}

/// Method, path, status, bytes, protocol, duration: `GET /x 200 123 h3 0.31ms`; and, where an upstream failed, why.
pub(super) fn terminal(entry: &Entry, style: Style, line: &mut Vec<u8>) {
    let Some(facts) = &entry.facts else { return };
    let status = entry.answer.status;
    let text = status.as_ref().map_or("-", StatusCode::as_str);
    let text = match status.map_or(0, |status| status.as_u16()) {
        ..100 => style.dim(text),
        100..300 => style.green(text),
        300..400 => style.bold(text),
        400..500 => style.yellow(text),
        500.. => style.red(text),
    };
    let took = duration(entry.took());
    let (bytes, protocol) = (entry.answer.bytes, entry.protocol().name());
    let _ = write!(line, "{} ", shorten(facts.method()));
    line.extend_from_slice(harmless(facts.path()).as_bytes());
    let _ = write!(line, " {text} {bytes} {protocol} {}", style.dim(&took));
    let _ = match entry.answer.reason {
        Some(reason) => writeln!(line, " {}", style.red(reason.name())),
        None => writeln!(line),
    };
}

/// A path as a terminal may see it: it must not take a client's bytes for commands.
fn harmless(path: &str) -> Cow<'_, str> {
    if path.len() <= LONGEST_PATH && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(path);
    }
    let mut shown = String::new();
    for character in path.chars().take(LONGEST_PATH) {
        if character.is_ascii_graphic() || character.is_alphanumeric() {
            shown.push(character);
        } else {
            let _ = write!(shown, "{}", character.escape_unicode());
        }
    }
    if path.chars().nth(LONGEST_PATH).is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}
