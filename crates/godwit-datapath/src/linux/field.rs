//! Memory that the kernel reads, or writes and says how much.

/// At most `ROOM` bytes, aligned as the kernel's structures are.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub(super) struct Field<const ROOM: usize> {
    pub(super) bytes: [u8; ROOM],
    pub(super) len: usize,
}

impl<const ROOM: usize> Default for Field<ROOM> {
    fn default() -> Self {
        Field { bytes: [0; ROOM], len: 0 }
    }
}

impl<const ROOM: usize> Field<ROOM> {
    /// What the kernel is given to read.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Where the kernel may write; [`Field::set_len`] must follow.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.bytes
    }

    /// Tells how much the kernel wrote.
    pub(super) fn set_len(&mut self, len: usize) {
        self.len = len.min(ROOM);
    }
}
