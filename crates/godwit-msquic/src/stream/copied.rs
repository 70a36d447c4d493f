//! What an application sends before the transport takes it, on a stream that waits for its connection or for the peer's permission:
//! where the connection buffers what it sends, it is copied, and told as complete.

use super::Start;
use crate::connection::IDEAL_SEND_BUFFER;
use crate::worker::State;
use bytes::Bytes;
use godwit_base::slab::Key;

impl State {
    /// Copies what a stream that has been started is to send when it may, as far as a connection buffers that much.
    pub(crate) fn copy_unsent(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| stream.start == Start::Blocked) else {
            return;
        };
        let connection = self.connections.get(stream.connection);
        if !connection.is_some_and(|connection| connection.sends_are_buffered()) {
            return;
        }
        let sending = &mut stream.sending;
        let mut left = IDEAL_SEND_BUFFER.saturating_sub(sending.copied_bytes);
        // Nothing is behind what was copied but what came since.
        let copied = sending.queue.partition_point(|unsent| unsent.is_copied);
        for unsent in sending.queue.iter_mut().skip(copied) {
            if left == 0 {
                break;
            }
            unsent.bytes = Bytes::copy_from_slice(&unsent.bytes);
            unsent.is_copied = true;
            let length = unsent.bytes.len() as u64;
            left = left.saturating_sub(length);
            sending.copied_bytes = sending.copied_bytes.saturating_add(length);
        }
        self.take_given_back();
    }
}
