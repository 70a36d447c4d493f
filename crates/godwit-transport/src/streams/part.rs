//! Streams as a part of the connection: see [`Part`].

use super::token::StreamToken;
use super::{SendHalf, Streams, input, output};
use crate::packet::PacketBuilder;
use crate::part::Part;
use crate::{Event, WireError};
use godwit_base::Time;
use godwit_recovery::Outcome;
use godwit_wire::Frame;

impl Part for Streams {
    type Token = StreamToken;

    #[inline]
    fn on_frame(&mut self, now: Time, frame: &Frame<'_>) -> Option<Result<(), WireError>> {
        input::on_frame(self, now, frame)
    }

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.interest().any()
    }

    /// Frames other than STREAM: data comes after all other frames, see [`Streams::write_data`].
    #[inline]
    fn write_frames<T: From<StreamToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if self.interest().control {
            self.write_control(packet);
        }
    }

    #[inline]
    fn on_acked(&mut self, token: StreamToken) {
        match token {
            StreamToken::Data { id, offset, len, fin } => {
                self.on_data_acked(id, offset..offset.saturating_add(u64::from(len)), fin);
            }
            StreamToken::ResetAt { id, reliable_size } => {
                self.on_reset_acked(id, |send| send.on_reset_at_acked(reliable_size));
            }
            StreamToken::Reset { id } => self.on_reset_acked(id, SendHalf::on_reset_acked),
            StreamToken::StopSending { .. }
            | StreamToken::MaxData
            | StreamToken::MaxStreamData { .. }
            | StreamToken::MaxStreams { .. } => {}
        }
    }

    #[inline]
    fn on_outcome(&mut self, outcome: Outcome, token: StreamToken) {
        match outcome {
            Outcome::Acked | Outcome::Spurious => self.on_acked(token),
            Outcome::Lost => self.repeat(token),
        }
    }

    fn repeat(&mut self, token: StreamToken) {
        match token {
            StreamToken::Data { id, offset, len, fin } => {
                self.on_data_missing(id, offset..offset.saturating_add(u64::from(len)), fin, true);
            }
            StreamToken::Reset { id } | StreamToken::ResetAt { id, .. } => self.owe_again(id, output::RESET),
            StreamToken::StopSending { id } => self.owe_again(id, output::STOP),
            StreamToken::MaxStreamData { id } => self.owe_again(id, output::MAX_STREAM_DATA),
            StreamToken::MaxData => self.control |= output::MAX_DATA,
            StreamToken::MaxStreams { direction } => self.control |= output::max_streams_bit(direction),
        }
    }

    const MERGES: bool = true;

    #[inline]
    fn merge(token: &mut StreamToken, next: StreamToken) -> bool {
        token.absorb(next)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.limits.watch.next())
    }

    fn release_memory(&mut self) {
        self.received = 0;
        for (_, stream) in self.store.iter_mut() {
            if let Some(recv) = &mut stream.recv {
                recv.release_memory();
                self.received = self.received.saturating_add(recv.held());
            }
        }
        self.control_queue.shrink_to_fit();
        self.budget.waiting.shrink_to_fit();
        self.events.shrink_to_fit();
    }
}
