//! What the tests of streams begin with: ends with small limits, and frames as the peer sees them.

use super::super::*;
use crate::TransportErrorCode;
use crate::packet::testing::payload;
use crate::part::Part;
use godwit_base::Time;
use godwit_wire::{Frame, Reader};

pub(super) const NOW: Time = Time::ZERO;
pub(super) const BIDI: Direction = Direction::Bidirectional;
pub(super) const UNI: Direction = Direction::Unidirectional;

pub(super) fn config() -> TransportConfig {
    TransportConfig {
        initial_stream_window: 1000,
        max_stream_window: 1000,
        initial_connection_window: 2500,
        max_connection_window: 2500,
        max_bidi_streams: 4,
        max_uni_streams: 4,
        send_buffer: 100_000,
        ..TransportConfig::default()
    }
}

pub(super) fn server() -> Streams {
    let mut streams = Streams::new(Side::Server, &config());
    let parameters = TransportParameters {
        initial_max_data: 1 << 20,
        initial_max_stream_data_bidi_local: 1 << 20,
        initial_max_stream_data_bidi_remote: 1 << 20,
        initial_max_stream_data_uni: 1 << 20,
        initial_max_streams_bidi: 4,
        initial_max_streams_uni: 4,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    streams
}

pub(super) fn id(initiator: Side, direction: Direction, index: u64) -> StreamId {
    StreamId::new(initiator, direction, index)
}

pub(super) fn events(streams: &mut Streams) -> Vec<Event> {
    std::iter::from_fn(|| streams.next_event()).collect()
}

pub(super) fn send(streams: &mut Streams, room: usize) -> (Vec<u8>, Vec<StreamToken>) {
    let (payload, tokens, ()) = payload(room, |packet| {
        streams.write_frames(packet);
        streams.write_data(packet);
    });
    (payload, tokens)
}

pub(super) fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
    let mut reader = Reader::new(payload);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        frames.push(Frame::decode(&mut reader).unwrap());
    }
    frames
}

pub(super) fn stream_ids(payload: &[u8]) -> Vec<u64> {
    let id = |frame| if let Frame::Stream { id, .. } = frame { Some(id.index()) } else { None };
    frames(payload).into_iter().filter_map(id).collect()
}

pub(super) fn take(streams: &mut Streams, frame: Frame<'_>) -> Result<(), crate::WireError> {
    streams.on_frame(NOW, &frame).unwrap()
}

pub(super) fn code(result: Result<(), crate::WireError>) -> Option<TransportErrorCode> {
    result.err().map(|error| error.code)
}
