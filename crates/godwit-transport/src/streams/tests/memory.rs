//! What a connection holds and may yet hold, and how far its streams have come.

use super::super::*;
use super::common::*;
use std::time::Duration;

#[test]
fn a_connection_may_yet_hold_what_it_permits_its_send_buffer_and_a_chunk_of_each_stream() {
    let mut streams = server();
    assert_eq!(streams.may_yet_hold(), 2500 + 65_536);
    streams.on_stream(NOW, id(Side::Client, UNI, 1), 0, &[7; 400], false).unwrap();
    assert_eq!(streams.may_yet_hold(), 2100 + 65_536 + 2 * 65_536);
}

#[test]
fn a_connection_is_in_the_midst_of_data_when_much_of_a_stream_has_come_and_not_all() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let stream = id(Side::Client, UNI, 0);
    assert!(!streams.in_midst_of_data(), "there is no stream");
    streams.on_stream(NOW, stream, 0, &[7; 4096], false).unwrap();
    assert!(!streams.in_midst_of_data(), "so much may be said on a control stream");
    streams.on_stream(NOW, stream, 4096, &[7], false).unwrap();
    assert!(streams.in_midst_of_data());
    while let Ok(ReadChunk::Data(_)) = streams.read(NOW, Duration::ZERO, stream, usize::MAX) {}
    assert!(streams.in_midst_of_data(), "all that has come was read, but there is more");
    streams.on_stream(NOW, stream, 4098, &[7], true).unwrap();
    assert!(streams.in_midst_of_data(), "a byte is missing");
    streams.on_stream(NOW, stream, 4097, &[7], false).unwrap();
    assert!(!streams.in_midst_of_data(), "all has come");
}

#[test]
fn a_stream_that_nobody_reads_is_not_in_the_midst_of_data() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let stream = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, stream, 0, &[7; 5000], false).unwrap();
    assert!(streams.in_midst_of_data());
    streams.stop_sending(stream, 0).unwrap();
    assert!(!streams.in_midst_of_data());
}

#[test]
fn a_connection_that_permits_nothing_does_not_announce_it_again_for_frames_without_data() {
    let mut config = config();
    (config.initial_connection_window, config.max_connection_window) = (0, 0);
    let mut streams = Streams::new(Side::Server, &config);
    streams.on_stream(NOW, id(Side::Client, UNI, 0), 0, b"", false).unwrap();
    assert_eq!(streams.interest(), Interest::default());
}
