//! Datagrams by the traits of `h3-datagram`.

use crate::support::{BoxError, ServerConnection, get, pair};
use bytes::Bytes;
use godwit::{DatagramConfig, TransportConfig};
use h3_datagram::datagram_handler::HandleDatagramsExt;

type ClientConnection = h3::client::Connection<godwit_h3::Connection, Bytes>;

/// Both ends with datagrams switched on, a request under way on its stream, and the server's half of it.
async fn with_a_request(
    pair: &crate::support::Pair,
) -> (ClientConnection, crate::support::Requests, crate::support::ClientStream, ServerConnection) {
    let (mut client, mut server) = (h3::client::builder(), h3::server::builder());
    let (built, server) = tokio::join!(
        client.enable_datagram(true).build(godwit_h3::Connection::new(pair.client.clone())),
        server.enable_datagram(true).build(godwit_h3::Connection::new(pair.server.clone())),
    );
    let ((client, mut requests), server) = (built.unwrap(), server.unwrap());
    let stream = requests.send_request(get("/")).await.unwrap();
    (client, requests, stream, server)
}

#[tokio::test]
async fn datagrams_pass_both_ways() -> Result<(), BoxError> {
    let pair = pair(TransportConfig::default()).await;
    let (client, _requests, stream, mut server) = with_a_request(&pair).await;
    let (_, accepted) = server.accept().await?.unwrap().resolve_request().await?;
    let id = stream.id();
    assert_eq!(accepted.id(), id);
    let (mut to_server, mut from_server) = (client.get_datagram_sender(id), client.get_datagram_reader());
    let (mut to_client, mut from_client) = (server.get_datagram_sender(id), server.get_datagram_reader());
    for number in 0..100_u8 {
        to_server.send_datagram(Bytes::from(vec![number; 1000]))?;
        let datagram = from_client.read_datagram().await?;
        assert_eq!((datagram.stream_id(), &datagram.payload()[..]), (id, &[number; 1000][..]));
        to_client.send_datagram(datagram.into_payload())?;
        assert_eq!(from_server.read_datagram().await?.into_payload(), [number; 1000][..]);
    }
    let too_large = to_server.send_datagram(Bytes::from(vec![0; 70_000]));
    assert_eq!(too_large.unwrap_err().to_string(), "Datagram is too large");
    pair.server.close(0x100_u32, b"");
    assert!(from_server.read_datagram().await.unwrap_err().is_h3_no_error());
    let over = to_server.send_datagram(Bytes::new());
    assert_eq!(
        over.unwrap_err().to_string(),
        "Connection error: Remote error: ApplicationClose: H3_NO_ERROR"
    );
    Ok(())
}

#[tokio::test]
async fn a_peer_that_takes_no_datagrams_gets_none() -> Result<(), BoxError> {
    let mut transport = TransportConfig::default();
    let mut datagrams = DatagramConfig::default();
    datagrams.max_frame_size = 0;
    transport.datagrams = datagrams;
    let pair = pair(transport).await;
    let (client, _requests, stream, _server) = with_a_request(&pair).await;
    let refused = client.get_datagram_sender(stream.id()).send_datagram(Bytes::from_static(b"x"));
    assert_eq!(refused.unwrap_err().to_string(), "Datagrams are not available");
    Ok(())
}
