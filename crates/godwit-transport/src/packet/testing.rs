//! Payloads by themselves, for tests of the parts that write them.

use super::{Counts, PacketBuilder};
use crate::path::PathId;
use godwit_base::{Rng, SeededRng, Time};
use godwit_recovery::SpaceId;
use godwit_wire::Writer;

/// What `write` puts into a packet with room for this much, and what it says of it.
pub(crate) fn payload<T, R>(
    room: usize,
    write: impl FnOnce(&mut PacketBuilder<'_, T>) -> R,
) -> (Vec<u8>, Vec<T>, R) {
    payload_at(Time::ZERO, PathId(0), &mut SeededRng::new(1), room, write)
}

/// The same, at this time and on this path.
pub(crate) fn payload_at<T, R>(
    now: Time,
    path: PathId,
    rng: &mut dyn Rng,
    room: usize,
    write: impl FnOnce(&mut PacketBuilder<'_, T>) -> R,
) -> (Vec<u8>, Vec<T>, R) {
    let (mut buffer, mut tokens) = (vec![0; room], Vec::new());
    let mut packet = PacketBuilder {
        writer: Writer::new(&mut buffer),
        tokens: &mut tokens,
        rng,
        now,
        path,
        space: SpaceId::Data,
        number: 0,
        start: 0,
        pn_offset: 0,
        pn_len: 0,
        length: None,
        payload_start: 0,
        first_token: 0,
        counts: Counts::Usual,
        ack_eliciting: false,
        expand: false,
        seal: super::SEAL,
    };
    let result = write(&mut packet);
    let len = packet.writer.len();
    buffer.truncate(len);
    (buffer, tokens, result)
}
