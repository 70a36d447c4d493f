//! A buffer that the kernel reads, or fills, and then says how far.

/// At most `CAPACITY` bytes, aligned as the kernel's structures are.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub(super) struct Field<const CAPACITY: usize> {
    pub(super) bytes: [u8; CAPACITY],
    pub(super) len: usize,
}

impl<const CAPACITY: usize> Default for Field<CAPACITY> {
    fn default() -> Self {
        Field { bytes: [0; CAPACITY], len: 0 }
    }
}

impl<const CAPACITY: usize> Field<CAPACITY> {
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
        self.len = len.min(CAPACITY);
    }
}
