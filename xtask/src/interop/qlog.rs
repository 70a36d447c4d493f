//! What Godwit's own traces tell of a case that cannot be seen from outside.

use serde_json::Value;
use std::collections::BTreeSet;
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
}

impl Told {
    /// Reads all traces in a folder.
    pub(super) fn read(folder: &Path) -> Result<Told, String> {
        let mut told = Told::default();
        let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(problem)? {
            let path = entry.map_err(problem)?.path();
            if path.extension().is_some_and(|extension| extension == "sqlog") {
                let text = fs::read(&path).map_err(problem)?;
                // The last record may be cut off: a server is ended while it writes.
                for record in text.split(|byte| *byte == 0x1e) {
                    if let Ok(event) = serde_json::from_slice::<Value>(record) {
                        told.take(&event);
                    }
                }
            }
        }
        Ok(told)
    }

    fn take(&mut self, event: &Value) {
        let data = &event["data"];
        match event["name"].as_str() {
            Some("quic:packet_sent") => self.packet(data, true),
            Some("quic:packet_received") => self.packet(data, false),
            Some("quic:parameters_set") => {
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
