//! Datagrams, streams that are reset but for their beginning, and the move to version 2.

use crate::support::{Net, client_config, on_every_net, server_config};
use bytes::Bytes;
use godwit::{
    ConnectionErrorKind, DatagramOutcome, DatagramOverflow, ReadError, SendDatagramError, TransportConfig,
};
use tokio::io::AsyncReadExt;

on_every_net! {
    datagrams_both_ways,
    outcomes_are_told,
    a_full_queue_makes_one_wait,
    what_came_before_the_close_can_be_read,
    a_stream_is_reset_but_for_its_beginning,
    a_server_prefers_version_2,
}

async fn datagrams_both_ways(net: Net) {
    let pair = net.pair().await;
    let max = pair.client.max_datagram_len().unwrap();
    assert!((1100..=65_535).contains(&max), "{max}");
    for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
        for len in [0, 1, 100, 1000] {
            from.send_datagram(vec![7; len].into()).unwrap();
            assert_eq!(to.read_datagram().await.unwrap(), vec![7; len]);
        }
    }
    let too_large = pair.client.send_datagram(vec![0; 1 << 17].into());
    assert!(matches!(too_large, Err(SendDatagramError::TooLarge { max }) if max >= 1100), "{too_large:?}");
    let frames = pair.client.stats().datagram_frames;
    assert_eq!((frames.sent, frames.received), (4, 4));
}

async fn outcomes_are_told(net: Net) {
    let pair = net.pair().await;
    pair.client.send_datagram_tagged(Bytes::from_static(b"one"), 1).unwrap();
    assert_eq!(pair.client.datagram_outcome().await.unwrap(), DatagramOutcome::Sent { tag: 1 });
    assert_eq!(pair.client.datagram_outcome().await.unwrap(), DatagramOutcome::Acknowledged { tag: 1 });
    assert_eq!(pair.client.cancel_datagram(1), 0, "it has left");
    pair.client.close(0, b"");
    let ended = pair.client.datagram_outcome().await.unwrap_err();
    assert_eq!(ended.kind(), ConnectionErrorKind::ClosedLocally);
    assert_eq!(pair.client.send_datagram(Bytes::new()), Err(SendDatagramError::Closed));
}

async fn a_full_queue_makes_one_wait(net: Net) {
    let mut transport = TransportConfig::default();
    transport.datagrams.send_buffer = 5_000;
    transport.datagrams.overflow = DatagramOverflow::Refuse;
    transport.datagrams.receive_buffer = 1 << 20;
    let pair = net.pair_with(transport.clone(), transport).await;
    let sender = pair.client.clone();
    let sending = tokio::spawn(async move {
        for number in 0..200_u8 {
            sender.send_datagram_wait(vec![number; 1000].into()).await.unwrap();
        }
    });
    for _ in 0..150 {
        assert_eq!(pair.server.read_datagram().await.unwrap().len(), 1000);
    }
    sending.await.unwrap();
}

async fn what_came_before_the_close_can_be_read(net: Net) {
    let pair = net.pair().await;
    pair.client.send_datagram_tagged(Bytes::from_static(b"last"), 1).unwrap();
    while pair.client.datagram_outcome().await.unwrap() != (DatagramOutcome::Acknowledged { tag: 1 }) {}
    pair.client.close(0, b"");
    pair.server.closed().await;
    assert_eq!(pair.server.read_datagram().await.unwrap(), &b"last"[..]);
    assert!(pair.server.read_datagram().await.is_err());
}

async fn a_stream_is_reset_but_for_its_beginning(net: Net) {
    let pair = net.pair().await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"header and the rest").await.unwrap();
    send.reset_at(9, 6).unwrap();
    let mut recv = pair.server.accept_uni().await.unwrap();
    let mut buffer = [0; 6];
    recv.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"header");
    let mut rest = [0; 100];
    loop {
        match recv.read(&mut rest).await {
            // What had left before may arrive as well.
            Ok(Some(len)) => assert!(b" and the rest".starts_with(&rest[..len])),
            other => break assert!(matches!(other, Err(ReadError::Reset(9))), "{other:?}"),
        }
    }
}

async fn a_server_prefers_version_2(net: Net) {
    let server = net.builder().server(server_config()).prefer_version_2(true).build().unwrap();
    let client = net.client();
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (client, server) = tokio::join!(connecting, accepting);
    let (client, server) = (client.unwrap(), server.unwrap());
    assert_eq!([client.version(), server.version()], [0x6b33_43cf; 2]);
    client.send_datagram(Bytes::from_static(b"two")).unwrap();
    assert_eq!(server.read_datagram().await.unwrap(), &b"two"[..]);
}
