//! One request in an access log: what is known of it, and its line of JSON.
//!
//! A line is one JSON object without spaces between its tokens, in ASCII only, its keys always in the same order;
//! keys whose value is not known are left out. Times are milliseconds with at most three decimals. The order and
//! the absence of spaces let a reader be fast, and are no promise: a reader must take any JSON.
//!
//! A client's text longer than [`LONGEST_TEXT`] is cut and ends with [`CUT`]: nobody fills a disk with few requests.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes that are kept of a path with its query, a host, a method, or a header field. (Escaped, they may take up to
/// six times as many.)
pub const LONGEST_TEXT: usize = 4096;

/// At the end of a text that was longer: an ellipsis, which the fields themselves hardly ever end with.
pub const CUT: char = '…';

/// One request. What is `None` is left out of the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// When the request's header section had arrived: milliseconds since 1970 UTC.
    pub time_ms: u64,
    /// The client's address, as much of it as may be kept.
    pub client: Option<ClientAddress>,
    /// IP version the client used: 4 or 6.
    pub family: Option<u8>,
    /// What was asked for, and how.
    pub request: Request<'a>,
    /// Status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// Why the client did not use HTTP/3, where that is known.
    pub why_not_h3: Option<WhyNotH3>,
    /// The user, as a hash that is stable.
    pub user: Option<u64>,
    /// The side of a staged roll-out that the user is on.
    pub arm: Option<Arm>,
    /// The connection, and what it has been through.
    pub connection: Connection,
    /// Bytes and times of the response.
    pub response: Response,
    /// The upstream that answered.
    pub upstream: Option<Upstream<'a>>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why the server answered in an upstream's place, or did not pass on the whole response: a word of the program's
    /// own.
    pub reason: Option<&'a str>,
    /// The request's `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// The request's `Referer`.
    pub referer: Option<&'a str>,
}

/// What a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Host that was asked, without a port.
    pub host: Option<&'a str>,
    /// Method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Protocol.
    pub protocol: Protocol,
    /// Bytes of the request's body that arrived.
    pub bytes: u64,
}

/// A connection at the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connection {
    /// Its number; no other of the same process has it.
    pub number: Option<u64>,
    /// Which request on it this is, from 1.
    pub request: Option<u64>,
    /// Whether its handshake resumed a session.
    pub tls_resumed: Option<bool>,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Packets or segments of the server that were lost so far.
    pub lost: Option<u64>,
    /// Packets or segments of the server that were sent again so far.
    pub retransmitted: Option<u64>,
}

/// What was sent back. Times count from the arrival of the request's header section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Response {
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// Until the response began.
    pub first_byte: Option<Duration>,
    /// Until its last byte was handed to the transport.
    pub last_byte: Option<Duration>,
    /// Until the client had acknowledged all of it.
    pub delivered: Option<Duration>,
}

/// An upstream's part in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upstream<'a> {
    /// Its address.
    pub address: &'a str,
    /// How long the server has waited for it in all.
    pub waited: Duration,
}

/// A client's address, or what may be kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAddress {
    /// All of it.
    Full(IpAddr),
    /// Its network: an IPv4 /24, an IPv6 /48.
    Prefix(IpAddr),
}

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$case_doc])* $case,)* }

        impl $name {
            /// All there are.
            pub const ALL: &[$name] = &[$($name::$case),*];

            /// As it is in the log.
            pub const fn name(self) -> &'static str {
                match self { $($name::$case => $text,)* }
            }

            /// The one of that name.
            pub fn of_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$case),)* _ => None }
            }
        }
    };
}

names! {
    /// The protocol of a request.
    Protocol {
        /// HTTP/1.0, or 0.9.
        Http10 = "http/1.0",
        /// HTTP/1.1.
        Http11 = "http/1.1",
        /// HTTP/2.
        H2 = "h2",
        /// HTTP/3.
        H3 = "h3",
    }
}

names! {
    /// Why a client came by TCP.
    WhyNotH3 {
        /// Nobody had told the client that there is HTTP/3.
        NotAdvertised = "not_advertised",
        /// The same user had been told, or used HTTP/3, at another address.
        OtherAddress = "other_address",
        /// The client had been told, and no packet of QUIC came from its address since.
        NoAttempt = "no_attempt",
        /// QUIC packets came from the client's address, and no handshake was completed.
        AttemptFailed = "attempt_failed",
    }
}

names! {
    /// A side of a staged roll-out.
    Arm {
        /// HTTP/3 is advertised to the user.
        On = "on",
        /// HTTP/3 is kept from the user.
        Off = "off",
    }
}

names! {
    /// How a request ended.
    Outcome {
        /// The whole response was handed to the transport.
        Ok = "ok",
        /// The client gave up, or its connection broke.
        ClientGone = "client_gone",
        /// The upstream gave no response, or only part of one.
        UpstreamFailed = "upstream_failed",
        /// The client took or sent too little for too long.
        TooSlow = "too_slow",
        /// The server ended before the response was over.
        CutOff = "cut_off",
        /// Something else went wrong while the response was sent.
        Failed = "failed",
        /// What the client sent was no request, or none that the server takes in.
        Refused = "refused",
    }
}

impl Record<'_> {
    /// `last_mile_ms`: from the request's arrival until the client had the response, less the time spent
    /// waiting for the upstream. `None` if it is not known when, or whether, the client had it.
    pub fn last_mile(&self) -> Option<Duration> {
        let total = self.response.delivered?;
        Some(total.saturating_sub(self.upstream.map_or(Duration::ZERO, |upstream| upstream.waited)))
    }

    /// Appends the record's line, with a line feed at its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let Record { request, connection, response, .. } = self;
        out.extend_from_slice(b"{\"time\":\"");
        write_time(out, self.time_ms);
        out.push(b'"');
        write_client(out, self.client);
        number(out, ",\"family\":", self.family.map(u64::from));
        text(out, ",\"host\":", request.host);
        text(out, ",\"method\":", Some(request.method));
        text(out, ",\"path\":", Some(request.path));
        name(out, ",\"protocol\":", Some(request.protocol.name()));
        number(out, ",\"status\":", self.status.map(u64::from));
        name(out, ",\"why_not_h3\":", self.why_not_h3.map(WhyNotH3::name));
        if let Some(user) = self.user {
            out.extend_from_slice(b",\"user\":\"");
            hex(out, user);
            out.push(b'"');
        }
        name(out, ",\"arm\":", self.arm.map(Arm::name));
        number(out, ",\"connection\":", connection.number);
        number(out, ",\"request\":", connection.request);
        name(
            out,
            ",\"tls\":",
            connection.tls_resumed.map(|resumed| if resumed { "resumed" } else { "full" }),
        );
        milliseconds(out, ",\"rtt_ms\":", connection.rtt);
        number(out, ",\"lost\":", connection.lost);
        number(out, ",\"retransmitted\":", connection.retransmitted);
        number(out, ",\"request_bytes\":", Some(request.bytes));
        number(out, ",\"response_bytes\":", Some(response.bytes));
        milliseconds(out, ",\"first_byte_ms\":", response.first_byte);
        milliseconds(out, ",\"last_byte_ms\":", response.last_byte);
        milliseconds(out, ",\"delivered_ms\":", response.delivered);
        text(out, ",\"upstream\":", self.upstream.map(|upstream| upstream.address));
        milliseconds(out, ",\"upstream_ms\":", self.upstream.map(|upstream| upstream.waited));
        milliseconds(out, ",\"last_mile_ms\":", self.last_mile());
        name(out, ",\"outcome\":", Some(self.outcome.name()));
        text(out, ",\"reason\":", self.reason);
        text(out, ",\"user_agent\":", self.user_agent);
        text(out, ",\"referer\":", self.referer);
        out.extend_from_slice(b"}\n");
    }
}

fn write_client(out: &mut Vec<u8>, client: Option<ClientAddress>) {
    use std::io::Write as _;
    // Writing into memory does not fail.
    let _ = match client {
        None => Ok(()),
        Some(ClientAddress::Full(address)) => write!(out, ",\"client\":\"{address}\""),
        Some(ClientAddress::Prefix(address)) => {
            let len = if address.is_ipv4() { 24 } else { 48 };
            write!(out, ",\"client\":\"{address}/{len}\"")
        }
    };
}

/// A text of the program's own, in which nothing needs to be escaped.
fn name(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(key.as_bytes());
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

fn number(out: &mut Vec<u8>, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(key.as_bytes());
        decimal(out, value);
    }
}

fn milliseconds(out: &mut Vec<u8>, key: &str, value: Option<Duration>) {
    if let Some(value) = value {
        out.extend_from_slice(key.as_bytes());
        write_milliseconds(out, value);
    }
}

fn text(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(key.as_bytes());
        write_string(out, &shorten(value));
    }
}

/// As much of a text as a log keeps, with [`CUT`] at its end if that is not all.
pub fn shorten(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return Cow::Borrowed(text);
    }
    let kept = text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or_default();
    let mut cut = String::with_capacity(LONGEST_TEXT.saturating_add(CUT.len_utf8()));
    cut.push_str(kept);
    cut.push(CUT);
    Cow::Owned(cut)
}

/// Appends a duration in milliseconds, with the decimals it needs and at most three; rounded to the nearest.
pub fn write_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    let nanos = duration.as_nanos();
    let micros = u64::try_from((nanos.saturating_add(500)) / 1000).unwrap_or(u64::MAX);
    decimal(out, micros / 1000);
    let rest = micros % 1000;
    if rest > 0 {
        let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + (digit % 10) as u8);
        let needed = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        out.push(b'.');
        out.extend_from_slice(digits.get(..needed).unwrap_or(&digits));
    }
}

/// Appends a JSON string: in ASCII, everything else escaped (RFC 8259 section 7).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut units = [0_u16; 2];
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            ' '..='~' => out.push(character as u8),
            other => {
                for unit in other.encode_utf16(&mut units) {
                    out.extend_from_slice(b"\\u");
                    out.extend([12, 8, 4, 0].map(|shift| hex_digit(u64::from(*unit) >> shift)));
                }
            }
        }
    }
    out.push(b'"');
}

fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut begin = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        begin = at;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(begin..).unwrap_or_default());
}

/// Appends sixteen hexadecimal digits.
fn hex(out: &mut Vec<u8>, value: u64) {
    out.extend((0..16).rev().map(|digit| hex_digit(value >> (digit * 4))));
}

fn hex_digit(value: u64) -> u8 {
    match (value & 15) as u8 {
        digit @ 0..10 => b'0' + digit,
        letter => b'a' + (letter - 10),
    }
}

/// Appends `2026-11-21T23:21:41.123Z` (RFC 3339).
pub fn write_time(out: &mut Vec<u8>, unix_ms: u64) {
    let time = godwit_text::rfc3339(unix_ms).unwrap_or_else(|| LAST_TIME.to_owned());
    out.extend_from_slice(time.as_bytes());
}

/// For times that the format has no room for.
const LAST_TIME: &str = "9999-12-31T23:59:59.999Z";

#[cfg(test)]
mod tests;
