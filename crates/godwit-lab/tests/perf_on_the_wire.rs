//! What goes over a stream of the "perf" protocol, byte by byte: as `secnetperf` of MsQuic writes it, against the server
//! here, and as the client here writes it, against a server that only looks.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use bytes::Bytes;
use godwit::{ClientConfig, Connection, Endpoint, ReadError, RecvStream, ServerConfig, WriteError};
use godwit_lab::perf::{self, ClientOptions, Scenario, Server, ServerOptions, Watcher};
use std::time::Duration;

/// The first bytes of each scenario's streams.
const DOWNLOAD_5000: [u8; 8] = [0, 0, 0, 0, 0, 0, 0x13, 0x88];
const DOWNLOAD_UNTIL_ABORTED: [u8; 8] = [0xff; 8];
const UPLOAD: [u8; 8] = [0; 8];
const REQUEST_FOR_8192: [u8; 8] = [0, 0, 0, 0, 0, 0, 0x20, 0];
const REQUEST_FOR_1: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

fn server() -> (Server, String) {
    let mut options = ServerOptions::default();
    options.listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(options).unwrap();
    let address = server.local_addr().unwrap().to_string();
    (server, address)
}

async fn connect(address: &str) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = ClientConfig::danger_accept_any_certificate().alpn(["perf"]).build().unwrap();
    let connecting = endpoint.connect(&config, address.parse().unwrap(), "localhost").unwrap();
    (endpoint, connecting.await.unwrap())
}

/// Writes a stream in these pieces and ends it.
async fn write(connection: &Connection, pieces: &[&[u8]]) -> RecvStream {
    let (mut send, recv) = connection.open_bi().await.unwrap();
    for piece in pieces {
        send.write_all(piece).await.unwrap();
        // The pieces leave one by one.
        tokio::task::yield_now().await;
    }
    send.finish().unwrap();
    recv
}

/// Writes a stream, and reads how many bytes were the whole answer.
async fn ask(connection: &Connection, pieces: &[&[u8]]) -> usize {
    write(connection, pieces).await.read_to_end(1 << 24).await.unwrap().len()
}

#[tokio::test]
async fn answers_have_the_length_that_the_header_says() {
    let (server, address) = server();
    let (_endpoint, connection) = connect(&address).await;
    assert_eq!(ask(&connection, &[&DOWNLOAD_5000]).await, 5000);
    assert_eq!(ask(&connection, &[&REQUEST_FOR_8192, &[0; 512]]).await, 8192);
    assert_eq!(ask(&connection, &[&REQUEST_FOR_1]).await, 1);
    assert_eq!(ask(&connection, &[&UPLOAD]).await, 0, "just the end");
    for length in [1, 7, 8, 1200, 65_536, 3_000_000] {
        assert_eq!(ask(&connection, &[&UPLOAD, &vec![0xaa; length]]).await, 0, "{length}");
    }
    let bytes: Vec<&[u8]> = REQUEST_FOR_8192.chunks(1).collect();
    assert_eq!(ask(&connection, &bytes).await, 8192, "byte by byte");
    assert_eq!(ask(&connection, &[&DOWNLOAD_5000[..3], &DOWNLOAD_5000[3..], &[9; 20]]).await, 5000);
    server.close();
}

#[tokio::test]
async fn a_timed_download_lasts_until_the_client_aborts_it() {
    let (server, address) = server();
    let (_endpoint, connection) = connect(&address).await;
    let mut recv = write(&connection, &[&DOWNLOAD_UNTIL_ABORTED]).await;
    let mut received = 0;
    // More than the windows hold: it goes on as it is read.
    while received < 40 << 20 {
        received += recv.read_chunk(usize::MAX).await.unwrap().unwrap().len();
    }
    recv.stop(0_u32);
    assert_eq!(ask(&connection, &[&DOWNLOAD_5000]).await, 5000, "the connection lives on");
    // Also before the first byte has come.
    write(&connection, &[&DOWNLOAD_UNTIL_ABORTED]).await.stop(0_u32);
    assert_eq!(ask(&connection, &[&REQUEST_FOR_1]).await, 1);
    server.close();
}

#[tokio::test]
async fn streams_that_are_no_requests_are_reset() {
    let (server, address) = server();
    let (_endpoint, connection) = connect(&address).await;
    for pieces in [&[][..], &[&UPLOAD[..7]]] {
        let read = write(&connection, pieces).await.read_chunk(usize::MAX).await;
        assert!(matches!(read, Err(ReadError::Reset(_))), "{read:?}");
    }
    // The client takes back what it has begun.
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&REQUEST_FOR_8192).await.unwrap();
    send.reset(0_u32);
    assert!(matches!(recv.read_chunk(usize::MAX).await, Err(ReadError::Reset(_))));
    // One way there is nothing to answer on.
    let mut upload = connection.open_uni().await.unwrap();
    upload.write_all(&[1; 100_000]).await.unwrap();
    upload.finish().unwrap();
    assert_eq!(upload.stopped().await.unwrap(), None, "all of it was taken");
    assert_eq!(ask(&connection, &[&REQUEST_FOR_1]).await, 1);
    server.close();
}

#[tokio::test]
async fn clients_may_close_with_a_code_of_their_own() {
    let (server, address) = server();
    let (endpoint, connection) = connect(&address).await;
    let mut recv = write(&connection, &[&DOWNLOAD_UNTIL_ABORTED]).await;
    assert!(recv.read_chunk(usize::MAX).await.unwrap().is_some());
    connection.close(0x1234_u32, b"done");
    endpoint.wait_idle().await;
    let (_endpoint, connection) = connect(&address).await;
    assert_eq!(ask(&connection, &[&REQUEST_FOR_1]).await, 1);
    server.close();
}

/// A server that takes the client's first stream of a scenario and shows its bytes to the end; of an answer there are so
/// many bytes. How the answer ended is shown as well.
async fn first_stream(scenario: Scenario, answer: Option<usize>) -> (Vec<u8>, Result<(), WriteError>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config =
        ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes()).alpn(["perf"]).build().unwrap();
    let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut options = ClientOptions::new(server.local_addr().unwrap().to_string(), scenario);
    (options.duration, options.request, options.response) = (Duration::from_millis(20), 3, 5);
    let client = tokio::task::spawn_blocking(move || perf::measure(&options, Watcher::default()));
    let connection = server.accept().await.unwrap().await.unwrap();
    let (mut send, mut recv) = connection.accept_bi().await.unwrap();
    let bytes = recv.read_to_end(1 << 30).await.unwrap();
    let written = match answer {
        Some(length) => send.write_all(&vec![7; length]).await.and_then(|()| send.finish()),
        None => loop {
            if let Err(error) = send.write_chunk(Bytes::from_static(&[7; 1000])).await {
                break Err(error);
            }
        },
    };
    let _ = connection.closed().await;
    let _ = client.await.unwrap();
    (bytes, written)
}

/// What a download that is checked comes to, from a server that may change what it sends.
async fn checked(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let (ours, address) = server();
    let (_endpoint, connection) = connect(&address).await;
    let mut answer = write(&connection, &[&DOWNLOAD_5000]).await.read_to_end(1 << 24).await.unwrap();
    ours.close();
    change(&mut answer);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config =
        ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes()).alpn(["perf"]).build().unwrap();
    let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut options = ClientOptions::new(server.local_addr().unwrap().to_string(), Scenario::Download);
    (options.duration, options.verify) = (Duration::from_secs(3600), true);
    let client = tokio::task::spawn_blocking(move || perf::measure(&options, Watcher::default()));
    let connection = server.accept().await.unwrap().await.unwrap();
    let (mut send, mut recv) = connection.accept_bi().await.unwrap();
    recv.read_to_end(1 << 10).await.unwrap();
    // A client that has seen enough may have stopped it by then.
    let _ = send.write_all(&answer).await.and_then(|()| send.finish());
    client.await.unwrap().unwrap_err().to_string()
}

#[tokio::test]
async fn a_download_that_is_checked_fails_at_the_first_wrong_byte() {
    let wrong = checked(|answer| answer[4321] ^= 1).await;
    assert!(wrong.starts_with("byte 4321 of the download is 0x"), "{wrong}");
    // All of it is right, and that it ends is what is wrong.
    let ended = checked(|_| ()).await;
    assert!(ended.contains("ended the download by itself"), "{ended}");
}

#[tokio::test]
async fn the_client_downloads_without_end_and_aborts() {
    let (bytes, written) = first_stream(Scenario::Download, None).await;
    assert_eq!(bytes, DOWNLOAD_UNTIL_ABORTED);
    assert!(matches!(written, Err(WriteError::Stopped(0))), "{written:?}");
}

#[tokio::test]
async fn the_client_uploads_after_a_header_that_asks_for_nothing() {
    let (bytes, written) = first_stream(Scenario::Upload, Some(0)).await;
    assert_eq!(bytes[..8], UPLOAD);
    assert!(bytes.len() > 8 && (bytes.len() - 8).is_multiple_of(64 << 10));
    assert!(written.is_ok(), "{written:?}");
}

#[tokio::test]
async fn the_client_asks_with_a_header_and_as_many_bytes_as_it_was_told() {
    for scenario in [Scenario::Requests, Scenario::Latency] {
        let (bytes, written) = first_stream(scenario, Some(5)).await;
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 5, 0x67, 0x67, 0x67]);
        assert!(written.is_ok(), "{written:?}");
    }
}
