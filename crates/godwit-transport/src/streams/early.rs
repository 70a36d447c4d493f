//! Streams used before the handshake is complete (RFC 9000 section 7.4.1, RFC 9001 section 4.6).
//!
//! When the server rejects 0-RTT, it has seen nothing of what was sent, and its limits may be lower than the
//! remembered ones: every stream begins anew with what the application wrote, and streams beyond the new limit are
//! held back until it rises.

use super::{Streams, output};
use crate::{Direction, StreamId};
use godwit_wire::transport_parameters::TransportParameters;

/// What is special about 0-RTT.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EarlyState {
    /// The frames that come now were in a 0-RTT packet.
    receiving: bool,
    /// Number of streams of ours that wait for the peer's limit to reach them.
    held: u32,
}

impl Streams {
    /// Whether the frames that come next were in a 0-RTT packet.
    pub(crate) const fn set_receiving_early(&mut self, receiving: bool) {
        self.early.receiving = receiving;
    }

    /// Whether new streams of the peer's are early.
    pub(super) const fn is_receiving_early(&self) -> bool {
        self.early.receiving
    }

    /// Whether the peer opened a stream with 0-RTT data. False once the stream is over.
    pub(crate) fn is_early(&self, id: StreamId) -> bool {
        self.store.find(id).and_then(|slot| self.store.at(slot)).is_some_and(|stream| stream.early)
    }

    /// Nothing of what was sent has been received, and the peer's limits are these.
    ///
    /// Expects that nothing has been acknowledged, and that nobody will tell of frames sent before.
    pub(crate) fn on_early_rejected(&mut self, parameters: &TransportParameters) {
        self.settings.peer_bidi_local = parameters.initial_max_stream_data_bidi_local;
        self.settings.peer_bidi_remote = parameters.initial_max_stream_data_bidi_remote;
        self.settings.peer_uni = parameters.initial_max_stream_data_uni;
        self.settings.peer_reset_at = parameters.reset_stream_at;
        self.credit.restart(parameters.initial_max_data);
        self.control &= !output::BLOCKED_BITS;
        self.limits.local(Direction::Bidirectional).restart(parameters.initial_max_streams_bidi);
        self.limits.local(Direction::Unidirectional).restart(parameters.initial_max_streams_uni);
        self.control_queue.clear();
        while self.scheduler.pop_blocked().is_some() {}
        let (side, settings) = (self.side, self.settings);
        let mut held = 0_u32;
        let (mut slots, mut freed) = (Vec::new(), Vec::new());
        self.budget.unsent = 0;
        for (slot, stream) in self.store.iter_mut() {
            stream.control_queued = false;
            if let Some(send) = &mut stream.send {
                if !settings.peer_reset_at
                    && let Some(code) = send.reset_at_code()
                {
                    // Part of a stream cannot be promised to this peer any more.
                    freed.push((slot, send.reset(code)));
                }
                send.restart(settings.peer_limit(side, stream.id));
                self.budget.unsent = self.budget.unsent.saturating_add(send.unsent());
            }
            let limit = self.limits.local(stream.id.direction()).limit();
            stream.held = stream.id.initiator() == side && stream.id.index() >= limit;
            held = held.saturating_add(u32::from(stream.held));
            slots.push(slot);
        }
        self.early.held = held;
        for (slot, freed) in freed {
            self.after_reset(slot, freed.unwrap_or(0));
        }
        slots.into_iter().for_each(|slot| self.resume(slot));
    }

    /// The peer's limit on streams has risen.
    pub(super) fn release_held(&mut self, direction: Direction) {
        if self.early.held == 0 {
            return;
        }
        let limit = self.limits.local(direction).limit();
        let mut slots = Vec::new();
        for (slot, stream) in self.store.iter_mut() {
            if stream.held && stream.id.direction() == direction && stream.id.index() < limit {
                stream.held = false;
                slots.push(slot);
            }
        }
        self.early.held = self.early.held.saturating_sub(u32::try_from(slots.len()).unwrap_or(u32::MAX));
        slots.into_iter().for_each(|slot| self.resume(slot));
    }

    /// A stream that was held, or begins anew, gets its place among those that have something to send.
    fn resume(&mut self, slot: u32) {
        self.reschedule(slot);
        self.owe(slot, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::StreamToken;
    use super::*;
    use crate::TransportConfig;
    use crate::packet::testing::payload;
    use crate::part::Part;
    use bytes::Bytes;
    use godwit_wire::{Frame, Side, frame::Frames};

    fn parameters(reset_stream_at: bool) -> TransportParameters {
        let mut parameters = TransportParameters { reset_stream_at, ..TransportParameters::default() };
        Streams::announce(&TransportConfig::default(), &mut parameters);
        parameters.reset_stream_at = reset_stream_at;
        parameters
    }

    #[test]
    fn a_server_that_does_not_know_reset_stream_at_any_more_is_not_told_of_it() {
        for known in [true, false] {
            let mut streams = Streams::new(Side::Client, &TransportConfig::default());
            streams.set_peer_limits(&parameters(true));
            let id = streams.open(Direction::Unidirectional).unwrap();
            streams.write(id, Bytes::from_static(&[7; 500])).unwrap();
            payload::<StreamToken, _>(1200, |packet| streams.write_data(packet));
            streams.reset_at(id, 9, 100).unwrap();
            streams.on_early_rejected(&parameters(known));
            streams.set_peer_limits(&parameters(known));
            payload::<StreamToken, _>(1200, |packet| streams.write_data(packet));
            let (written, ..) = payload::<StreamToken, _>(1200, |packet| streams.write_frames(packet));
            let last = Frames::new(&written).last().unwrap().unwrap();
            let expected = if known {
                Frame::ResetStreamAt { id, code: 9, final_size: 100, reliable_size: 100 }
            } else {
                Frame::ResetStream { id, code: 9, final_size: 0 }
            };
            assert_eq!(last, expected);
            assert_eq!(streams.reset_at(id, 9, 0).is_ok(), known);
        }
    }
}
