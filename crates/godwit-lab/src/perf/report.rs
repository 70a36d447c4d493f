//! What a run came to: a table for people, one line of JSON for programs.

use super::breakdown::{Breakdown, Share};
use super::client::Idle;
use super::latency::{Latency, Percentiles};
use super::memory::Growth;
use godwit_os::processor::Usage;
use godwit_text::{Style, size};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// The outcome of a client's run. Only what the scenario measures is there.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What was measured.
    pub scenario: &'static str,
    /// Over what: `QUIC` or `TCP`; of requests over HTTP the scenario tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<&'static str>,
    /// The server, as it was typed.
    pub peer: String,
    /// Connections at the same time.
    pub connections: u32,
    /// Streams at once on each connection, or handshakes at once.
    pub concurrency: u32,
    /// From the first stream or handshake to the end of what was counted; of requests by the clock, the time in which they
    /// were due.
    pub seconds: f64,
    /// Bytes of stream data that were received, or sent and confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// 10^6 bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mbit_per_second: Option<f64>,
    /// Requests whose answer was read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// Connections made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Rate>,
    /// Requests at the same time over all connections, where they are not so many on each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// Where requests were begun by the clock: how many a second, and what became of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// How many of these resumed a session, where they were to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u64>,
    /// From the beginning to the end of each, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Percentiles>,
    /// All of them, of which those are the percentiles.
    #[serde(skip)]
    pub latency: Option<Latency>,
    /// Processor time of this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Where this end's processor time went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Processor time of the processes that were named, such as a server's on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<Cpu>,
    /// What became of connections on which nothing happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// How much this process has grown by its connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Growth>,
    /// How much the process that was named has, such as a server's on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory: Option<Growth>,
    /// What there is to say of requests over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpFigures>,
    /// The cipher suite that was negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// The transport's counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
}

/// How many of something, and of what size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// How many in a second.
    pub per_second: f64,
    /// Bytes of each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// Bytes of each response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
}

/// Requests that were begun by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OpenLoop {
    /// How many were to be begun in a second.
    pub rate: f64,
    /// Of those that were due, how many were not answered in the end; unknown if it was ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
}

/// The processor time of this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cpu {
    /// Seconds on a core.
    pub seconds: f64,
    /// Time in which a thread was ready and had no core: a large figure spoils the others.
    pub waited_seconds: f64,
    /// Per 10^9 bytes of stream data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_gb: Option<f64>,
    /// Per request or handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us_each: Option<f64>,
}

/// What became of requests over HTTP.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct HttpFigures {
    /// Requests that were to be begun in a second; without it, each was as soon as another was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many answers had which status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a whole answer.
    pub failed: u64,
    /// Why the first of these failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Of those that were due, how many were not answered in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
    /// Connections that were made because others had ended.
    pub reconnected: u64,
}

/// The transport's counters, summed over all connections, and its estimates on the first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Transport {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets lost.
    pub packets_lost: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Largest UDP payload that passes.
    pub mtu: u16,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: f64,
    /// Congestion window in bytes.
    pub window: u64,
}

impl Cpu {
    fn new(usage: Usage, bytes: Option<u64>, each: Option<u64>) -> Cpu {
        let seconds = usage.ran.as_secs_f64();
        let per = |count: Option<u64>, unit: f64, digits: f64| {
            count.filter(|count| *count > 0).map(|count| rounded(seconds * unit / count as f64, digits))
        };
        Cpu {
            seconds: rounded(seconds, 1e6),
            waited_seconds: rounded(usage.waited.as_secs_f64(), 1e6),
            seconds_per_gb: per(bytes, 1e9, 1e3),
            us_each: per(each, 1e6, 1e2),
        }
    }
}

impl Report {
    /// What was measured in `elapsed`, using `usage` of the processor here and `server` of it elsewhere.
    pub(super) fn measured(&mut self, elapsed: Duration, usage: Option<Usage>, server: Option<Usage>) {
        self.seconds = rounded(elapsed.as_secs_f64(), 1e6);
        self.mbit_per_second = self.bytes.map(|bytes| rounded(per_second(bytes, elapsed) * 8e-6, 1e2));
        for rate in [&mut self.requests, &mut self.handshakes].into_iter().flatten() {
            rate.per_second = rounded(per_second(rate.count, elapsed), 1e1);
        }
        let each = self.requests.or(self.handshakes).map(|rate| rate.count);
        self.cpu = usage.map(|usage| Cpu::new(usage, self.bytes, each));
        self.server_cpu = server.map(|usage| Cpu::new(usage, self.bytes, each));
    }

    /// One line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // A record of numbers and strings can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A table of two columns.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let mut table = Table { text: String::new(), style };
        let at_once = match (self.handshakes, self.idle) {
            (Some(_), _) => format!("{} at once", self.concurrency),
            (_, Some(_)) => plural(self.connections, "connection"),
            _ if let Some(count) = self.in_flight => {
                format!("{}, {count} requests at once", plural(self.connections, "connection"))
            }
            _ => {
                format!("{} x {}", plural(self.connections, "connection"), plural(self.concurrency, "stream"))
            }
        };
        let over = self.protocol.map_or(String::new(), |protocol| format!(" over {protocol}"));
        table.row(self.scenario, &format!("{}{over}, {at_once}, {:.2} s", self.peer, self.seconds));
        if let (Some(bytes), Some(rate)) = (self.bytes, self.mbit_per_second) {
            table.row("throughput", &format!("{} Mbit/s ({bytes} bytes)", style.bold(&grouped(rate))));
        }
        if let Some(rate) = self.requests {
            let sizes = match (rate.request_bytes, rate.response_bytes) {
                (Some(up), Some(down)) => format!(", {up} bytes up and {down} down"),
                (None, Some(down)) => format!(", {down} bytes down"),
                _ => String::new(),
            };
            let per_second = grouped(rate.per_second);
            table.row("requests", &format!("{} per second ({}{sizes})", style.bold(&per_second), rate.count));
        }
        if let Some(OpenLoop { rate, unanswered }) = self.open_loop {
            let late = unanswered.map_or(String::new(), |count| format!(", {count} not answered in time"));
            table.row("by the clock", &format!("{} to be begun per second{late}", grouped(rate)));
        }
        if let Some(rate) = self.handshakes {
            let per_second = grouped(rate.per_second);
            let resumed =
                self.resumed.map_or(String::new(), |resumed| format!(", {resumed} of them resumed"));
            let count = rate.count;
            table.row("handshakes", &format!("{} per second ({count}{resumed})", style.bold(&per_second)));
        }
        if let Some(http) = &self.http {
            table.row("answers", &answers(http));
        }
        if let Some(latency) = self.latency_us {
            table.row("latency (us)", &percentiles(&latency));
        }
        if let Some(idle) = self.idle {
            table.row("idle", &format!("{} opened, {} died", plural(idle.opened, "connection"), idle.died));
        }
        for (name, growth) in [("memory (this)", self.memory), ("memory (server)", self.server_memory)] {
            if let Some(growth) = growth {
                table.row(name, &grown(&growth));
            }
        }
        if let Some(cpu) = self.cpu {
            table.row("cpu (this end)", &processor(&cpu));
        }
        for (name, part) in self.breakdown.iter().flat_map(Breakdown::parts) {
            table.row(&format!("  {name}"), &share(&part));
        }
        if let Some(cpu) = self.server_cpu {
            table.row("cpu (server)", &processor(&cpu));
        }
        if let Some(cipher) = &self.cipher {
            table.row("cipher", cipher);
        }
        if let Some(transport) = self.transport {
            table.row("transport", &counters(&transport));
        }
        table.text
    }
}

struct Table {
    text: String,
    style: Style,
}

impl Table {
    fn row(&mut self, name: &str, value: &str) {
        let name = format!("{name:<15}");
        // Writing into a string does not fail.
        let _ = writeln!(self.text, "{} {value}", self.style.dim(&name));
    }
}

fn percentiles(latency: &Percentiles) -> String {
    let Percentiles { samples, p50, p90, p99, p99_9, p99_99, max, .. } = latency;
    let sparse = latency.sparse();
    let few = match sparse.as_slice() {
        [] => String::new(),
        names => format!("; fewer than 10 are above {}", names.join(", ")),
    };
    format!(
        "P50 {p50}  P90 {p90}  P99 {p99}  P99.9 {p99_9}  P99.99 {p99_99}  max {max}  ({samples} samples{few})"
    )
}

fn grown(growth: &Growth) -> String {
    let bytes = |bytes: i64| format!("{}{}", if bytes < 0 { "-" } else { "" }, size(bytes.unsigned_abs()));
    let pss = growth.pss_bytes.map_or(String::new(), |pss| format!(", PSS by {}", bytes(pss)));
    let each = grouped(growth.bytes_per_connection);
    format!("{each} bytes per connection (RSS has grown by {}{pss})", bytes(growth.rss_bytes))
}

fn processor(cpu: &Cpu) -> String {
    let mut text = format!("{:.2} s", cpu.seconds);
    for (value, unit) in [(cpu.seconds_per_gb, "s/GB"), (cpu.us_each, "us each")] {
        if let Some(value) = value {
            let _ = write!(text, ", {value} {unit}");
        }
    }
    let _ = write!(text, ", {:.2} s ready without a core", cpu.waited_seconds);
    text
}

fn share(part: &Share) -> String {
    let mut text = format!("{:4.1} %, {:.2} s", part.share * 100.0, part.seconds);
    for (value, unit) in [(part.seconds_per_gb, "s/GB"), (part.us_each, "us each")] {
        if let Some(value) = value {
            let _ = write!(text, ", {value} {unit}");
        }
    }
    text
}

/// Statuses, and what else is out of the ordinary.
fn answers(http: &HttpFigures) -> String {
    let statuses = http.statuses.iter().map(|(status, count)| format!("{count} with status {status}"));
    let mut parts: Vec<String> = statuses.collect();
    if http.failed > 0 {
        let why = http.first_failure.as_deref().unwrap_or_default();
        parts.push(format!("{} failed (the first: {})", http.failed, godwit_text::printable(why)));
    }
    if let Some(unanswered) = http.unanswered.filter(|unanswered| *unanswered > 0) {
        parts.push(format!("{unanswered} not answered in time"));
    }
    if http.reconnected > 0 {
        parts.push(format!("{} connections made anew", http.reconnected));
    }
    if parts.is_empty() { "none in time".to_owned() } else { parts.join(", ") }
}

fn counters(transport: &Transport) -> String {
    let Transport { packets_sent, packets_lost, mtu, rtt_us, window, .. } = transport;
    let window = size(*window);
    format!("{packets_sent} packets sent, {packets_lost} lost, mtu {mtu}, rtt {rtt_us} us, window {window}")
}

fn plural(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

pub(super) fn rounded(value: f64, digits: f64) -> f64 {
    (value * digits).round() / digits
}

/// A number with its thousands apart, without decimals above 1000.
pub(super) fn grouped(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(ran: Duration) -> Option<Usage> {
        let mut usage = Usage::default();
        usage.ran = ran;
        Some(usage)
    }

    #[test]
    fn throughput_is_in_millions_of_bits() {
        let mut report = Report { scenario: "download", bytes: Some(2_500_000_000), ..Report::default() };
        report.measured(Duration::from_secs(2), usage(Duration::from_secs(1)), None);
        assert_eq!(report.mbit_per_second, Some(10_000.0));
        assert_eq!(report.cpu.unwrap().seconds_per_gb, Some(0.4));
        assert_eq!(report.cpu.unwrap().us_each, None);
    }

    #[test]
    fn json_is_one_line_with_what_was_measured() {
        let rate =
            Rate { count: 3000, per_second: 0.0, request_bytes: Some(512), response_bytes: Some(8192) };
        let mut report = Report { scenario: "requests", requests: Some(rate), ..Report::default() };
        report.measured(Duration::from_millis(1500), usage(Duration::from_millis(30)), None);
        let json = report.json();
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["requests"]["per_second"], 2000.0);
        assert_eq!(value["cpu"]["us_each"], 10.0);
        assert!(value.get("bytes").is_none() && value.get("handshakes").is_none());
    }

    #[test]
    fn nothing_measured_is_not_divided_by() {
        let mut report = Report { scenario: "upload", bytes: Some(0), ..Report::default() };
        report.measured(Duration::ZERO, usage(Duration::from_secs(1)), None);
        assert_eq!(report.mbit_per_second, Some(0.0));
        assert_eq!(report.cpu.unwrap().seconds_per_gb, None);
        assert!(report.table(Style::PLAIN).contains("0 Mbit/s"));
    }

    #[test]
    fn percentiles_say_of_how_many_they_are() {
        let mut latency = Latency::new();
        (0..1000).for_each(|_| latency.record(Duration::from_micros(3)));
        let report = Report { latency_us: latency.percentiles(), ..Report::default() };
        let text = report.table(Style::PLAIN);
        assert!(text.contains("(1000 samples; fewer than 10 are above P99.9, P99.99)"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(value["latency_us"]["samples"], 1000);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(999.5), "999.5");
        assert_eq!(grouped(1000.4), "1 000");
        assert_eq!(grouped(12_345_678.0), "12 345 678");
    }
}
