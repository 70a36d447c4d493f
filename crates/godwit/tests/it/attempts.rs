//! Attempts to connect: what is known of them before the end, and what becomes of those that nobody waits for.

use crate::support::{Net, client_builder, client_config, impatient, on_every_net, server_builder};
use godwit::{ConnectionErrorKind, Evidence, Progress, TransportConfig};
use std::time::Duration;
use tokio::net::UdpSocket;

on_every_net! {
    progress_is_told_as_it_is_made,
    silence_is_told_from_an_answer,
    versions_that_are_offered_are_noted,
    a_parked_attempt_finishes_and_is_taken,
    what_is_parked_ends_with_the_endpoint,
}

async fn progress_is_told_as_it_is_made(net: Net) {
    let server = net.server_with(server_builder().retry(true).build().unwrap());
    let client = net.client();
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = tokio::spawn(async move { (server.accept().await.unwrap().await.unwrap(), server) });
    let (mut seen, mut evidence) = (Vec::new(), Evidence::default());
    while evidence.progress < Progress::Complete {
        evidence = connecting.evidence_changed(evidence).await;
        seen.push(evidence);
    }
    assert!(seen.is_sorted_by_key(|evidence| evidence.progress), "{seen:?}");
    assert!(evidence.retry && !evidence.version_negotiation && evidence.unreachable.is_none());
    assert!(
        evidence.datagrams_sent >= 2 && evidence.datagrams_received >= 2 && evidence.bytes_received > 1200
    );
    assert!(evidence.rtt.is_some_and(|rtt| rtt > Duration::ZERO));
    assert!(connecting.evidence().progress >= Progress::Complete);
    connecting.await.unwrap();
    accepting.await.unwrap();
}

/// A socket that has got the first datagram of an attempt, with the ids in it: the client's own and the one it made up
/// for the server.
async fn first_packet(socket: &UdpSocket) -> (std::net::SocketAddr, Vec<u8>, Vec<u8>) {
    let mut datagram = [0; 2000];
    let (_, from) = socket.recv_from(&mut datagram).await.unwrap();
    let (theirs, rest) = datagram[6..].split_at(usize::from(datagram[5]));
    let ours = &rest[1..][..usize::from(rest[0])];
    (from, ours.to_vec(), theirs.to_vec())
}

async fn silence_is_told_from_an_answer(net: Net) {
    let server = UdpSocket::bind(net.any_port()).await.unwrap();
    let client = net.client();
    let config = client_builder().transport(impatient()).build().unwrap();
    let mut connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let sent = connecting.evidence_changed(Evidence::default()).await;
    assert_eq!(
        (sent.progress, sent.datagrams_received, connecting.heard_from_peer()),
        (Progress::Sent, 0, false)
    );
    let (from, id, _) = first_packet(&server).await;
    let gibberish = [&[0x41][..], &id, &[0x5a; 40]].concat();
    server.send_to(&gibberish, from).await.unwrap();
    let heard = connecting.evidence_changed(sent).await;
    assert_eq!((heard.progress, heard.datagrams_received, heard.rtt), (Progress::Heard, 1, None));
    assert_eq!(heard.bytes_received, gibberish.len() as u64);
    // There is no more to come: the end ends the waiting.
    let last = connecting.evidence_changed(heard).await;
    assert_eq!(last.progress, Progress::Heard);
    let error = (&mut connecting).await.unwrap_err();
    assert_eq!(error.kind(), ConnectionErrorKind::HandshakeTimedOut);
}

async fn versions_that_are_offered_are_noted(net: Net) {
    let server = UdpSocket::bind(net.any_port()).await.unwrap();
    let client = net.client();
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let (from, ours, theirs) = first_packet(&server).await;
    let (ours_len, theirs_len) = ([ours.len() as u8], [theirs.len() as u8]);
    let parts = [&[0xc0, 0, 0, 0, 0][..], &ours_len, &ours, &theirs_len, &theirs, &[0x1a; 4]];
    server.send_to(&parts.concat(), from).await.unwrap();
    let mut evidence = Evidence::default();
    while !evidence.version_negotiation {
        evidence = connecting.evidence_changed(evidence).await;
    }
    assert_eq!(connecting.await.unwrap_err().kind(), ConnectionErrorKind::VersionMismatch);
}

async fn a_parked_attempt_finishes_and_is_taken(net: Net) {
    let (server, client) = (net.server(), net.client());
    let (config, addr) = (client_config(), server.local_addr().unwrap());
    client.park(client.connect(&config, addr, "localhost").unwrap());
    // It finishes although nobody waits for it.
    let accepted = server.accept().await.unwrap().await.unwrap();
    assert!(client.take_parked(&config, addr, "elsewhere").is_none());
    assert!(client.take_parked(&client_config(), addr, "localhost").is_none(), "other settings");
    let taken = client.take_parked(&config.clone(), addr, "localhost").unwrap();
    assert!(client.take_parked(&config, addr, "localhost").is_none(), "there was one");
    let connection = taken.await.unwrap();
    let mut send = connection.open_uni().await.unwrap();
    send.write_all(b"in time").await.unwrap();
    send.finish().unwrap();
    assert_eq!(accepted.accept_uni().await.unwrap().read_to_end(100).await.unwrap(), b"in time");
    // What has failed meanwhile is not given out.
    client.park(client.connect(&config, addr, "localhost").unwrap());
    server.accept().await.unwrap().refuse();
    while let Some(not_yet) = client.take_parked(&config, addr, "localhost") {
        client.park(not_yet);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn what_is_parked_ends_with_the_endpoint(net: Net) {
    let (server, client) = (net.server(), net.client());
    client.park(client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap());
    let accepted = server.accept().await.unwrap().await.unwrap();
    drop(client);
    assert_eq!(accepted.closed().await.kind(), ConnectionErrorKind::ClosedByPeer);
}

/// Nobody is at the port, and the system says so at once: long before the first probe timeout.
#[cfg(target_os = "linux")]
#[test]
fn what_the_network_says_is_known_at_once() {
    for net in [Net::NATIVE_V4, Net::NATIVE_V6] {
        crate::support::run(net, async |net| {
            let nobody = UdpSocket::bind(net.any_port()).await.unwrap().local_addr().unwrap();
            let client = net.reporting().build().unwrap();
            let server = net.server();
            // Probes and the end are far away: they do not find it out.
            let mut patient = TransportConfig::default();
            patient.initial_rtt = Duration::from_secs(600);
            patient.handshake_timeout = Duration::from_secs(3600);
            let config = client_builder().transport(patient).build().unwrap();
            let connecting = client.connect(&config, nobody, "localhost").unwrap();
            let mut evidence = Evidence::default();
            while evidence.unreachable.is_none() {
                evidence = connecting.evidence_changed(evidence).await;
            }
            assert_eq!(evidence.unreachable, Some(std::io::ErrorKind::ConnectionRefused));
            assert_eq!((evidence.probes, evidence.progress), (0, Progress::Sent));
            // What is said of another attempt's packets is not said of this one's.
            let reports = connecting.evidence().unreachable_reports;
            let second = client.connect(&config, nobody, "localhost").unwrap();
            let mut of_second = Evidence::default();
            while of_second.unreachable.is_none() {
                of_second = second.evidence_changed(of_second).await;
            }
            assert_eq!(connecting.evidence().unreachable_reports, reports);
            drop(second);
            // Others on the same socket are not concerned, and the attempt itself goes on.
            for _ in 0..3 {
                let other =
                    client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
                let (ours, theirs) = tokio::join!(other, async { server.accept().await.unwrap().await });
                let mut send = ours.unwrap().open_uni().await.unwrap();
                send.write_all(&[7; 100_000]).await.unwrap();
                send.finish().unwrap();
                let read = theirs.unwrap().accept_uni().await.unwrap().read_to_end(1 << 20).await;
                assert_eq!(read.unwrap().len(), 100_000);
            }
            assert_eq!(connecting.evidence().progress, Progress::Sent);
        });
    }
}
