//! Values and the bytes that they are made of: how they go to and from memory of a program, which need not be aligned.

use super::layout::Layout;
use std::mem::MaybeUninit;

/// What any bytes make a value of.
///
/// # Safety
/// Every pattern of bits is a value, and what a pointer in it leads to is nobody's business before it is followed.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($(#[$why:meta])* $type:ty),* $(,)?) => {
        $(
            // SAFETY: it is made of numbers, and of pointers that are numbers until they are followed.
            unsafe impl Plain for $type {}
        )*
    };
}

plain! {
    u8, u16, u32, u64,
    super::Address,
    super::GlobalSettings,
    super::PrivateTransportParameter,
    super::StatelessRetryConfig,
    super::TicketKeyConfig,
    super::VersionSettings,
}

/// The bytes of a value. Those between its members have no value.
pub(crate) fn bytes_of<T: Copy>(value: &T) -> &[MaybeUninit<u8>] {
    // SAFETY: the value lies there for as long as the slice is borrowed, and is looked at as bytes that may have no value.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

/// The bytes of a value's members, and zero between them: a program gets nothing else that this process has in its memory.
pub(crate) fn bytes_of_members<T: Copy>(value: &T, layout: &Layout) -> Vec<MaybeUninit<u8>> {
    let bytes = bytes_of(value);
    let mut members = vec![MaybeUninit::new(0); bytes.len()];
    let of_fields = layout.fields.iter().map(|field| (field.offset, field.size));
    let of_bits = layout.bits.iter().map(|bits| (bits.first / 8, bits.width.div_ceil(8)));
    for (offset, size) in of_fields.chain(of_bits) {
        let range = offset..offset.saturating_add(size);
        if let (Some(to), Some(from)) = (members.get_mut(range.clone()), bytes.get(range)) {
            to.copy_from_slice(from);
        }
    }
    members
}

/// Bytes that all have a value, as they go where there may be others.
pub(crate) fn as_uninit(bytes: &[u8]) -> &[MaybeUninit<u8>] {
    // SAFETY: what has a value is one of those that may have none.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The value at the beginning of these bytes, if there are enough.
pub(crate) fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes, and any of them make a value.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The values of which there are the bytes, from the first on; what is left behind the last is no part of any.
pub(crate) fn read_all<T: Plain>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>().max(1)).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Address, StatisticsV2};
    use std::net::SocketAddr;

    #[test]
    fn a_value_comes_back_from_its_bytes_wherever_they_lie() {
        let address: SocketAddr = "[2001:db8::1%7]:4433".parse().unwrap_or_else(|_| ([1, 2, 3, 4], 5).into());
        let value = Address::from(address);
        let mut bytes = vec![MaybeUninit::new(0xff)];
        bytes.extend(bytes_of(&value));
        // SAFETY: an address has no byte without a value.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert_eq!(read::<Address>(&bytes[1..]).and_then(|it| it.socket_address()), Some(address));
        assert!(read::<Address>(&bytes[2..]).is_none());
    }

    #[test]
    fn between_members_there_is_zero() {
        let value = StatisticsV2 { rtt: u32::MAX, send_path_mtu: u16::MAX, ..StatisticsV2::default() };
        let bytes = bytes_of_members(&value.with_stateless_retry(true), &StatisticsV2::LAYOUT);
        assert_eq!(bytes.len(), 232);
        // SAFETY: every byte is zero or a member's.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
        let set = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0);
        let set: Vec<_> = set.map(|(at, byte)| (at, *byte)).collect();
        assert_eq!(set, [(8, 2), (12, 255), (13, 255), (14, 255), (15, 255), (60, 255), (61, 255)]);
    }

    #[test]
    fn as_many_are_read_as_there_are_whole_ones() {
        assert_eq!(read_all::<u16>(&[1, 0, 2, 0, 3]), [1, 2]);
        assert_eq!(read_all::<u32>(&[1, 0, 0]), []);
    }
}
