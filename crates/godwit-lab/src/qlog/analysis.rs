//! One trace, taken in event by event.

use std::collections::BTreeMap;
use std::time::Duration;

use godwit_report::qlog::Event;
use serde_json::Value;

use super::losses::{Losses, Path};
use super::series::{Bin, Series};
use super::stalls::{Sending, Stalls};

/// Kinds of packets and of drops that are told apart; a damaged trace could name any number.
const KINDS: usize = 16;
/// The size of a packet before any is known.
const PACKET: u64 = 1200;

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// What a trace says.
#[derive(Debug)]
pub struct Analysis {
    pub(super) vantage: String,
    pub(super) group: String,
    pub(super) began: Option<String>,
    pub(super) cut_off: bool,
    /// The time of the last event.
    pub(super) length: Duration,
    pub(super) version: Option<String>,
    pub(super) alpn: Option<String>,
    pub(super) remote: Option<String>,
    pub(super) complete: Option<Duration>,
    pub(super) confirmed: Option<Duration>,
    pub(super) closed: Option<String>,
    pub(super) mtu: Option<u64>,
    pub(super) sent: BTreeMap<String, Count>,
    pub(super) received: BTreeMap<String, Count>,
    pub(super) dropped: BTreeMap<String, Count>,
    /// Payload of streams, sent and received, with repetitions.
    pub(super) stream_bytes: (u64, u64),
    pub(super) rtt: Rtt,
    pub(super) largest_window: u64,
    pub(super) slow_start_ended: Option<Duration>,
    pub(super) reductions: u64,
    /// What has become of ECN, as the trace calls it.
    pub(super) ecn: Option<String>,
    pub(super) probe_timeouts: u64,
    pub(super) migrations: u64,
    pub(super) key_updates: u64,
    pub(super) losses: Losses,
    pub(super) stalls: Stalls,
    pub(super) series: Series,
    sending: Sending,
    last_ack: Duration,
}

/// Round-trip times in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rtt {
    pub(super) least: Option<f64>,
    pub(super) latest: f64,
    pub(super) smoothed: f64,
    pub(super) most: f64,
}

impl Analysis {
    pub(super) fn new(header: Value) -> Analysis {
        let text = |pointer: &str| header.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Analysis {
            vantage: text("/trace/vantage_point/type").unwrap_or_default(),
            group: text("/trace/common_fields/group_id").unwrap_or_default(),
            began: text("/trace/common_fields/reference_time/wall_clock_time"),
            cut_off: false,
            length: Duration::ZERO,
            version: None,
            alpn: None,
            remote: None,
            complete: None,
            confirmed: None,
            closed: None,
            mtu: None,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            dropped: BTreeMap::new(),
            stream_bytes: (0, 0),
            rtt: Rtt::default(),
            largest_window: 0,
            slow_start_ended: None,
            reductions: 0,
            ecn: None,
            probe_timeouts: 0,
            migrations: 0,
            key_updates: 0,
            losses: Losses::default(),
            stalls: Stalls::default(),
            series: Series::new(),
            sending: Sending { packet: PACKET, ..Sending::default() },
            last_ack: Duration::ZERO,
        }
    }

    /// Takes an event in. Those that say nothing here are passed over.
    pub(super) fn take(&mut self, event: &Event) {
        let (now, data) = (event.time.max(self.length), &event.data);
        self.length = now;
        match event.name.as_str() {
            "packet_sent" => self.on_packet(now, data, true),
            "packet_received" => self.on_packet(now, data, false),
            "packet_dropped" => {
                let why = data["trigger"].as_str().unwrap_or("unknown");
                count(&mut self.dropped, why, length(data));
            }
            "packet_lost" => self.on_lost(now, data),
            "recovery_metrics_updated" => self.on_metrics(now, data),
            "congestion_state_updated" if data["new"] == "congestion_avoidance" => {
                self.slow_start_ended.get_or_insert(now);
            }
            "mtu_updated" => {
                self.mtu = bytes(&data["new"]);
                self.sending.packet = self.mtu.unwrap_or(PACKET);
            }
            "ecn_state_updated" => self.ecn = data["new"].as_str().map(str::to_owned),
            "migration_state_updated" if data["new"] == "migration_complete" => self.migrations += 1,
            // Both directions are told of; one counts.
            "key_updated" if data["trigger"] == "local_update" || data["trigger"] == "remote_update" => {
                let side = format!("{}_1rtt_secret", self.vantage);
                self.key_updates += u64::from(data["key_type"] == side.as_str());
            }
            _ => self.on_life(now, &event.name, data),
        }
    }

    /// The trace is over.
    pub(super) fn finish(&mut self, cut_off: bool) {
        self.cut_off = cut_off;
    }

    fn on_life(&mut self, now: Duration, name: &str, data: &Value) {
        match name {
            "connection_started" => {
                let remote = &data["remote"];
                let address = remote["ip_v4"].as_str().or(remote["ip_v6"].as_str());
                let port = remote["port_v4"].as_u64().or(remote["port_v6"].as_u64());
                self.remote = address.map(|address| match port {
                    Some(port) if address.contains(':') => format!("[{address}]:{port}"),
                    Some(port) => format!("{address}:{port}"),
                    None => address.to_owned(),
                });
            }
            "connection_state_updated" => match data["new"].as_str() {
                Some("handshake_complete") => {
                    self.complete.get_or_insert(now);
                    self.sending.connected = true;
                }
                Some("handshake_confirmed") => _ = self.confirmed.get_or_insert(now),
                _ => {}
            },
            "connection_closed" => self.closed = Some(close_reason(data)),
            "version_information" => {
                self.version = data["chosen_version"].as_str().map(str::to_owned).or(self.version.take());
            }
            "alpn_information" => {
                let chosen = data.pointer("/chosen_alpn/string_value");
                self.alpn = chosen.and_then(Value::as_str).map(str::to_owned);
            }
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Duration, data: &Value, ours: bool) {
        let kind = data.pointer("/header/packet_type").and_then(Value::as_str).unwrap_or("unknown");
        let bytes = length(data);
        count(if ours { &mut self.sent } else { &mut self.received }, kind, bytes);
        let (sent, received) = if ours { (bytes, 0) } else { (0, bytes) };
        self.series.add(now, Bin { sent, received, ..Bin::default() });
        let one_rtt = kind == "1RTT";
        for frame in data["frames"].as_array().into_iter().flatten() {
            self.on_frame(now, frame, ours, one_rtt);
        }
    }

    fn on_frame(&mut self, now: Duration, frame: &Value, ours: bool, one_rtt: bool) {
        match frame["frame_type"].as_str().unwrap_or_default() {
            "stream" => {
                let bytes = length(frame);
                *(if ours { &mut self.stream_bytes.0 } else { &mut self.stream_bytes.1 }) += bytes;
                self.stalls.on_data(now, &self.sending);
                if let Some(id) = frame["stream_id"].as_u64() {
                    self.stalls.on_stream(id, ours, frame["fin"] == true);
                }
            }
            "reset_stream" | "reset_stream_at" => {
                if let Some(id) = frame["stream_id"].as_u64() {
                    self.stalls.on_stream(id, ours, true);
                }
            }
            "data_blocked" | "stream_data_blocked" | "streams_blocked" if ours => self.stalls.on_blocked(),
            "max_data" | "max_stream_data" | "max_streams" if !ours => self.stalls.on_permitted(),
            "ack" if !ours => {
                self.last_ack = now;
                if one_rtt && self.losses.is_waiting() {
                    for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                        let ends = (range[0].as_u64(), range[1].as_u64().or(range[0].as_u64()));
                        if let (Some(first), Some(last)) = ends {
                            self.losses.on_acked(first, last);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn on_lost(&mut self, now: Duration, data: &Value) {
        let path = Path {
            latest_rtt: self.rtt.latest,
            min_rtt: self.rtt.least.unwrap_or(self.rtt.latest),
            silence: now.saturating_sub(self.last_ack),
        };
        self.losses.on_lost(now, data, path);
        self.series.add(now, Bin { lost: 1, ..Bin::default() });
    }

    fn on_metrics(&mut self, now: Duration, data: &Value) {
        let number = |name: &str| data[name].as_f64().filter(|value| (0.0..1e12).contains(value));
        if let Some(latest) = number("latest_rtt") {
            self.rtt.latest = latest;
            self.rtt.most = self.rtt.most.max(latest);
        }
        if let Some(least) = number("min_rtt") {
            self.rtt.least = Some(least);
        }
        let smoothed = number("smoothed_rtt");
        self.rtt.smoothed = smoothed.unwrap_or(self.rtt.smoothed);
        self.sending.rtt = self.rtt.smoothed;
        let window = bytes(&data["congestion_window"]);
        self.reductions += u64::from(window.is_some_and(|window| window < self.sending.window));
        self.sending.window = window.unwrap_or(self.sending.window);
        self.largest_window = self.largest_window.max(self.sending.window);
        let in_flight = bytes(&data["bytes_in_flight"]);
        self.sending.in_flight = in_flight.unwrap_or(self.sending.in_flight);
        self.probe_timeouts += u64::from(data["pto_count"].as_u64().is_some_and(|count| count > 0));
        // Before the first sample the round-trip time is a guess.
        let rtt = smoothed.filter(|_| self.rtt.least.is_some());
        self.series.add(now, Bin { window, in_flight, rtt, ..Bin::default() });
    }
}

fn count(counts: &mut BTreeMap<String, Count>, kind: &str, bytes: u64) {
    if let Some(count) = counts.get_mut(kind) {
        count.add(bytes);
    } else if counts.len() < KINDS {
        counts.insert(kind.to_owned(), Count { packets: 1, bytes });
    }
}

fn length(data: &Value) -> u64 {
    let raw = &data["raw"];
    bytes(&raw["length"]).or(bytes(&raw["payload_length"])).unwrap_or(0)
}

/// A number of bytes. Damaged traces may say anything: what nothing can be is cut off, so that sums do not run over.
fn bytes(value: &Value) -> Option<u64> {
    value.as_u64().map(|bytes| bytes.min(1 << 40))
}

/// Who closed the connection, and why.
fn close_reason(data: &Value) -> String {
    let by = match data["initiator"].as_str() {
        Some("local") => "by this end",
        Some("remote") => "by the peer",
        _ => "by itself",
    };
    let why = if let Some(error) = data["connection_error"].as_str() {
        error.to_owned()
    } else if let Some(code) = data["error_code"].as_u64() {
        format!("code {code} of the application")
    } else {
        data["trigger"].as_str().unwrap_or("no reason given").replace('_', " ")
    };
    match data["reason"].as_str() {
        Some(reason) if !reason.is_empty() => format!("{by}, {why}: {reason}"),
        _ => format!("{by}, {why}"),
    }
}
