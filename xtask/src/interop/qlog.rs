//! What Godwit's own traces tell of a case that cannot be seen from outside.

use godwit_report::qlog::{Event, Records};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The events of all connections of one run, counted as the checks need them.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// 1-RTT packets with the key phase bit, sent and received.
    pub(super) other_phase: (usize, usize),
    /// Acknowledgements with ECN counts, sent and received.
    pub(super) ecn_counts: (usize, usize),
    /// Data of path challenges and responses, sent and received alike.
    pub(super) challenges: BTreeSet<String>,
    pub(super) responses: BTreeSet<String>,
    /// 1-RTT packets sent, in order: how long they are, and the path challenge in it, if there is one.
    pub(super) sent: Vec<(usize, Option<String>)>,
    /// Numbers of the Initial packets sent, in order.
    pub(super) initials: Vec<u64>,
    /// Initial packets with the beginning of the handshake, sent and received.
    pub(super) hellos: (usize, usize),
    /// Bidirectional streams permitted at first, by us and by the peer.
    pub(super) streams: (Option<u64>, Option<u64>),
    /// What the peer never sent again, though it went on sending, in words.
    pub(super) not_repeated: Vec<String>,
}

/// A connection that goes on for so many packets and milliseconds after others that are missing has had reason to
/// repeat them.
const ENOUGH_PACKETS: usize = 50;
const ENOUGH_MS: f64 = 5000.0;

/// What one connection received on its streams.
#[derive(Debug, Default)]
struct Received {
    /// By stream: offsets and ends, and when it came.
    pieces: BTreeMap<u64, Vec<(u64, u64, f64)>>,
    /// When packets came.
    times: Vec<f64>,
}

impl Received {
    fn take(&mut self, event: &Event) {
        if event.name != "packet_received" {
            return;
        }
        let at = event.time.as_secs_f64() * 1000.0;
        self.times.push(at);
        for frame in event.data["frames"].as_array().into_iter().flatten() {
            if let (Some("stream"), Some(id), Some(len)) =
                (frame["frame_type"].as_str(), frame["stream_id"].as_u64(), frame["raw"]["length"].as_u64())
            {
                let offset = frame["offset"].as_u64().unwrap_or_default();
                self.pieces.entry(id).or_default().push((offset, offset + len, at));
            }
        }
    }

    /// The first bytes of a stream that were missing until the end, long after later ones had come.
    fn not_repeated(mut self) -> Option<String> {
        for (id, pieces) in &mut self.pieces {
            pieces.sort_by_key(|(start, ..)| *start);
            let mut end = 0;
            for (start, next_end, _) in pieces.iter() {
                if *start > end {
                    let later = pieces.iter().filter(|(start, ..)| *start > end).map(|(.., at)| *at);
                    let missed = later.fold(f64::INFINITY, f64::min);
                    let since: Vec<_> = self.times.iter().filter(|at| **at > missed).collect();
                    let last = since.last().map_or(missed, |at| **at);
                    return (since.len() >= ENOUGH_PACKETS && last - missed >= ENOUGH_MS).then(|| {
                        let (seconds, count) = ((last - missed) / 1000.0, since.len());
                        format!(
                            "the peer did not repeat bytes {end}..{start} of stream {id}: {count} packets came in the {seconds:.0} s after they were missed"
                        )
                    });
                }
                end = end.max(*next_end);
            }
        }
        None
    }
}

impl Told {
    /// Reads all traces in a folder.
    pub(super) fn read(folder: &Path) -> Result<Told, String> {
        let mut told = Told::default();
        let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(problem)? {
            let path = entry.map_err(problem)?.path();
            if path.extension().is_some_and(|extension| extension == "sqlog") {
                let mut received = Received::default();
                // One that is damaged tells as much as can be read of it: a server may be ended while it writes.
                let mut records = Records::open(&path).map_err(|error| error.to_string())?;
                if records.header().is_ok() {
                    while let Ok(Some(event)) = records.next_event() {
                        told.take(&event);
                        received.take(&event);
                    }
                }
                told.not_repeated.extend(received.not_repeated());
            }
        }
        Ok(told)
    }

    fn take(&mut self, event: &Event) {
        let data = &event.data;
        match event.name.as_str() {
            "packet_sent" => self.packet(data, true),
            "packet_received" => self.packet(data, false),
            "parameters_set" => {
                let limit = data["initial_max_streams_bidi"].as_u64();
                let ours = data["initiator"] == "local";
                let place = if ours { &mut self.streams.0 } else { &mut self.streams.1 };
                *place = limit.or(*place);
            }
            _ => {}
        }
    }

    fn packet(&mut self, data: &Value, sent: bool) {
        let count = |pair: &mut (usize, usize)| *(if sent { &mut pair.0 } else { &mut pair.1 }) += 1;
        let header = &data["header"];
        if header["packet_type"] == "1RTT" && header["key_phase"].as_u64().is_some_and(|phase| phase % 2 == 1)
        {
            count(&mut self.other_phase);
        }
        let mut challenge = None;
        for frame in data["frames"].as_array().into_iter().flatten() {
            let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
            match frame["frame_type"].as_str() {
                Some("ack") if !frame["ect0"].is_null() || !frame["ect1"].is_null() => {
                    count(&mut self.ecn_counts);
                }
                Some("path_challenge") => {
                    challenge = Some(text("data"));
                    self.challenges.insert(text("data"));
                }
                Some("path_response") => drop(self.responses.insert(text("data"))),
                Some("crypto") if header["packet_type"] == "initial" && frame["offset"] == 0 => {
                    count(&mut self.hellos);
                }
                _ => {}
            }
        }
        let len = data["raw"]["length"].as_u64().and_then(|len| usize::try_from(len).ok());
        match header["packet_type"].as_str() {
            Some("1RTT") if sent => self.sent.push((len.unwrap_or_default(), challenge)),
            Some("initial") if sent => self.initials.extend(header["packet_number"].as_u64()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn received(packets: &[(f64, u64)]) -> Received {
        let mut received = Received::default();
        for (time, offset) in packets {
            let frame = serde_json::json!({
                "frame_type": "stream", "stream_id": 4, "offset": offset, "raw": { "length": 10 },
            });
            received.take(&Event {
                time: Duration::from_secs_f64(time / 1000.0),
                name: "packet_received".to_owned(),
                data: serde_json::json!({ "frames": [frame] }),
            });
        }
        received
    }

    #[test]
    fn what_is_missing_for_long_was_not_repeated() {
        let mut packets: Vec<_> =
            (0..100_u32).map(|count| (f64::from(count) * 100.0, u64::from(count) * 10)).collect();
        assert_eq!(received(&packets).not_repeated(), None);
        packets.remove(10);
        let said = received(&packets).not_repeated().unwrap();
        assert!(said.starts_with("the peer did not repeat bytes 100..110 of stream 4: 88 packets"), "{said}");
        packets.push((9950.0, 100));
        assert_eq!(received(&packets).not_repeated(), None, "late, but there");
        assert_eq!(received(&[(0.0, 0), (1.0, 20)]).not_repeated(), None, "it may have been about to");
    }
}
