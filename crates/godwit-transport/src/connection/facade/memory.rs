//! What is held for the peer, here and by what runs on the connection.

use super::Connection;
use godwit_base::Time;

impl Connection {
    /// Sets how many bytes the application holds for the peer beside what the connection does: what it has read and cannot
    /// use yet, what it has made and could not write. They count in the [`MemoryLimit`](crate::MemoryLimit) as if the
    /// connection held them, from the next [`Endpoint::touch`](crate::Endpoint::touch) until they are set otherwise or the
    /// connection is over. At first 0.
    ///
    /// What reads as fast as data comes, and keeps it, should say so: the windows of flow control do not hold such data back.
    #[inline]
    pub const fn set_held_by_application(&mut self, bytes: u64) {
        self.held_by_application = bytes;
    }

    /// True while there is not enough memory for what the peer's network has held for it
    /// ([`MemoryLimit`](crate::MemoryLimit)): buffers and windows are small, and the application should make ready no more
    /// than can be written at once.
    pub const fn is_to_hold_little(&self) -> bool {
        self.machine.parts.streams.is_to_hold_little()
    }

    /// Bytes that are held for the peer in all.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.machine.held().saturating_add(self.held_by_application)
    }

    /// Closes because too much is held, and holds it no longer. What runs on the connection hears of it, and does the same.
    pub(crate) fn close_for_memory(&mut self, now: Time) {
        self.machine.close_for_memory(now);
        self.held_by_application = 0;
    }
}
