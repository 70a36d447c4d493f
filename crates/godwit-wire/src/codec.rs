//! A cursor over received bytes and a cursor over bytes to send, and the variable-length integer
//! (RFC 9000 section 16).

/// What was read is not what the RFC says it must be: cut short, or out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The buffer to write into is too small. Nothing usable was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

/// The largest value a variable-length integer can hold: 2^62 - 1.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes as a variable-length integer: 1, 2, 4 or 8.
///
/// Values above [`VARINT_MAX`] cannot be encoded; they count as 8 and fail in [`Writer::varint`].
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads from a borrowed slice, front to back.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// What has not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not read yet.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True if everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next two bytes, big-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes, big-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A variable-length integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let first = *self.rest.first().ok_or(Malformed)?;
        match first >> 6 {
            0 => self.u8().map(u64::from),
            1 => self.u16().map(|value| u64::from(value & 0x3fff)),
            2 => self.u32().map(|value| u64::from(value & 0x3fff_ffff)),
            _ => self.array().map(u64::from_be_bytes).map(|value| value & VARINT_MAX),
        }
    }

    /// A variable-length integer that counts bytes to follow, and those bytes.
    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint()?;
        self.bytes(usize::try_from(len).map_err(|_| Malformed)?)
    }
}

/// Writes into a borrowed slice, front to back.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Writer { buffer, used: 0 }
    }

    /// Bytes written so far.
    pub const fn len(&self) -> usize {
        self.used
    }

    /// True if nothing has been written.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.buffer.len().saturating_sub(self.used)
    }

    /// What has been written.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.used).unwrap_or_default()
    }

    /// What has been written, to be changed in place (lengths known late, encryption).
    pub fn written_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.used).unwrap_or_default()
    }

    /// Takes back everything written after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.used = self.used.min(len);
    }

    /// The next `len` bytes, to be filled by the caller.
    #[inline]
    pub fn space(&mut self, len: usize) -> Result<&mut [u8], NoRoom> {
        let end = self.used.checked_add(len).ok_or(NoRoom)?;
        let space = self.buffer.get_mut(self.used..end).ok_or(NoRoom)?;
        self.used = end;
        Ok(space)
    }

    /// Appends `bytes`.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.space(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), NoRoom> {
        self.bytes(&[value])
    }

    /// Appends two bytes, big-endian.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), NoRoom> {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends four bytes, big-endian.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), NoRoom> {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends a variable-length integer in its shortest form.
    #[inline]
    pub fn varint(&mut self, value: u64) -> Result<(), NoRoom> {
        match varint_len(value) {
            1 => self.u8(value as u8),
            2 => self.u16(value as u16 | 0x4000),
            4 => self.u32(value as u32 | 0x8000_0000),
            _ if value <= VARINT_MAX => self.bytes(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
            _ => Err(NoRoom),
        }
    }

    /// Appends a count of bytes and the bytes.
    pub fn prefixed(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.varint(bytes.len() as u64)?;
        self.bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn varints_of_the_appendix() {
        let cases: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!((reader.varint(), reader.is_empty()), (Ok(value), true));
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            assert_eq!(writer.varint(value), Ok(()));
            // The last case is not the shortest form.
            let shortest: &[u8] = if bytes == [0x40, 0x25] { &[0x25] } else { bytes };
            assert_eq!(writer.written(), shortest);
        }
    }

    proptest! {
        #[test]
        fn varints_come_back(bits in 1..=62_u32, noise: u64) {
            let value = noise >> (64 - bits);
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value).unwrap();
            prop_assert_eq!(writer.len(), varint_len(value));
            prop_assert_eq!(Reader::new(writer.written()).varint(), Ok(value));
            for len in 0..varint_len(value) {
                prop_assert_eq!(Reader::new(&writer.written()[..len]).varint(), Err(Malformed));
                prop_assert_eq!(Writer::new(&mut vec![0; len]).varint(value), Err(NoRoom));
            }
        }

        #[test]
        fn prefixed_bytes_are_within_the_input(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(inner) = reader.prefixed() {
                prop_assert!(inner.len() + reader.remaining() < bytes.len());
            } else if let Ok(announced) = Reader::new(&bytes).varint() {
                prop_assert!(announced as usize + varint_len(announced) > bytes.len());
            }
        }
    }

    /// The number that these bytes hold by the definition, bit for bit; none if they are too few.
    fn by_definition(bytes: &[u8]) -> Option<(u64, usize)> {
        let len = 1 << (bytes.first()? >> 6);
        let bits = bytes.get(..len)?.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        Some((bits.skip(2).fold(0, |value, bit| value * 2 + u64::from(bit)), len))
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_form_of_one_and_two_bytes_and_every_edge_of_the_others_is_read() {
        let edges = [0, 1, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, VARINT_MAX - 1, VARINT_MAX];
        let four =
            edges.into_iter().filter(|value| *value < 1 << 30).map(|value| (value | 2 << 30).to_be_bytes());
        let eight = edges.into_iter().map(|value| (value | 3 << 62).to_be_bytes());
        let two = (0..=u16::MAX).map(|bytes| bytes.to_be_bytes().to_vec());
        let longer = four.map(|bytes| bytes[4..].to_vec()).chain(eight.map(|bytes| bytes.to_vec()));
        for bytes in two.chain(longer) {
            for cut in 0..=bytes.len() {
                let mut reader = Reader::new(&bytes[..cut]);
                let read = reader.varint().ok().map(|value| (value, cut - reader.remaining()));
                assert_eq!(read, by_definition(&bytes[..cut]), "{bytes:02x?} cut at {cut}");
                let left = read.map_or(cut, |(_, len)| cut - len);
                assert_eq!((reader.remaining(), reader.rest()), (left, &bytes[cut - left..cut]));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_small_number_and_every_edge_takes_the_fewest_bytes() {
        let edges =
            [1 << 30, VARINT_MAX].into_iter().flat_map(|edge: u64| edge - 2..=edge.min(VARINT_MAX - 1) + 1);
        for value in (0..1 << 15).chain(edges) {
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            assert!(writer.is_empty());
            writer.varint(value).unwrap();
            let len = [(6, 1), (14, 2), (30, 4), (62, 8)]
                .into_iter()
                .find(|(bits, _)| value >> bits == 0)
                .unwrap()
                .1;
            assert_eq!((writer.len(), varint_len(value), writer.is_empty()), (len, len, false), "{value}");
            assert_eq!(by_definition(writer.written()), Some((value, len)));
        }
    }

    #[test]
    fn numbers_of_63_bits_are_not_written() {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        assert_eq!((writer.varint(VARINT_MAX + 1), writer.len()), (Err(NoRoom), 0));
        assert_eq!(writer.varint(VARINT_MAX), Ok(()));
    }
}
