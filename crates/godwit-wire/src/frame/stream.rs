//! STREAM frames (RFC 9000 section 19.8) written in two steps, header and then data, so that data can be
//! copied straight into the packet.

use super::kind;
use crate::codec::varint_len;
use crate::{NoRoom, StreamId, Writer};

/// The type's bit for an offset field.
pub(crate) const OFFSET: u64 = 0x04;
/// The type's bit for a length field.
pub(crate) const LENGTH: u64 = 0x02;
/// The type's bit for the end of the stream.
pub(crate) const FIN: u64 = 0x01;

/// Writes everything of a STREAM frame that comes before its `len` bytes of data.
///
/// With `extend_to_end` there is no length field, and the data reaches to the end of the packet: nothing
/// may follow it, not even padding. If the header does not fit (the data is not counted), the writer is
/// left as it was.
#[inline]
pub fn write_header(
    writer: &mut Writer<'_>,
    id: StreamId,
    offset: u64,
    len: usize,
    fin: bool,
    extend_to_end: bool,
) -> Result<(), NoRoom> {
    let start = writer.len();
    let offset_bit = if offset > 0 { OFFSET } else { 0 };
    let length_bit = if extend_to_end { 0 } else { LENGTH };
    let mut write = || {
        writer.u8((kind::STREAM | offset_bit | length_bit | u64::from(fin)) as u8)?;
        writer.varint(id.as_u64())?;
        if offset > 0 {
            writer.varint(offset)?;
        }
        if !extend_to_end {
            writer.varint(len as u64)?;
        }
        Ok(())
    };
    write().inspect_err(|NoRoom| writer.truncate(start))
}

/// Bytes that [`write_header`] takes with a length field. Without one it is [`varint_len`] of `len` less.
#[inline]
pub const fn header_len(id: StreamId, offset: u64, len: usize) -> usize {
    let offset_len = if offset > 0 { varint_len(offset) } else { 0 };
    1_usize
        .saturating_add(varint_len(id.as_u64()))
        .saturating_add(offset_len)
        .saturating_add(varint_len(len as u64))
}
