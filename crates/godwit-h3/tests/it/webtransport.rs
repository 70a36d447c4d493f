//! WebTransport by the crate `h3-webtransport`, of which there is a server alone: the client is written down byte by byte.

use crate::support::{BoxError, Pair, pair};
use bytes::Bytes;
use godwit::{RecvStream, SendStream, TransportConfig};
use h3_webtransport::server::{AcceptedBi, WebTransportSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Session = WebTransportSession<godwit_h3::Connection, Bytes>;

/// A control stream (RFC 9114 section 6.2.1) with SETTINGS: extended CONNECT, datagrams (RFC 9297), and WebTransport as
/// its draft 02 had it (0x2b603742).
const CONTROL: &[u8] = &[0x00, 0x04, 0x09, 0x08, 0x01, 0x33, 0x01, 0xab, 0x60, 0x37, 0x42, 0x01];
/// What streams of the session begin with: their types, and the stream of its request, 0.
const BIDIRECTIONAL: &[u8] = &[0x40, 0x41, 0x00];
const UNIDIRECTIONAL: &[u8] = &[0x40, 0x54, 0x00];

/// HEADERS with an extended CONNECT: `:method`, `:scheme` and `:path` from QPACK's static table, the others as they are.
fn connect() -> Vec<u8> {
    let mut fields = vec![0x00, 0x00, 0xcf, 0xd7, 0xc1];
    fields.extend_from_slice(b"\x50\x09localhost");
    fields.extend_from_slice(b"\x27\x02:protocol\x0cwebtransport");
    let mut frame = vec![0x01, u8::try_from(fields.len()).unwrap()];
    frame.append(&mut fields);
    frame
}

/// The server's session, and the client's request, which must stay open.
async fn session(pair: &Pair) -> Result<(Session, (SendStream, RecvStream), SendStream), BoxError> {
    let mut control = pair.client.open_uni().await?;
    control.write_all(CONTROL).await?;
    let mut request = pair.client.open_bi().await?;
    request.0.write_all(&connect()).await?;
    let mut builder = h3::server::builder();
    builder.enable_webtransport(true).enable_extended_connect(true).enable_datagram(true);
    builder.max_webtransport_sessions(1).send_grease(false);
    let mut connection = builder.build(godwit_h3::Connection::new(pair.server.clone())).await?;
    let resolver = connection.accept().await?.ok_or("no request")?;
    let (asked, stream) = resolver.resolve_request().await?;
    let session = WebTransportSession::accept(asked, stream, connection).await?;
    // HEADERS, in which `:status` 200 comes from the static table.
    let answer = request.1.read_chunk(1000).await?.ok_or("no answer")?;
    assert!(answer.starts_with(&[0x01]) && answer.contains(&0xd9), "{answer:?}");
    Ok((session, request, control))
}

#[tokio::test]
async fn streams_and_datagrams_of_a_session_pass_both_ways() -> Result<(), BoxError> {
    let pair = pair(TransportConfig::default()).await;
    let (session, _request, _control) = session(&pair).await?;

    let (mut send, mut receive) = pair.client.open_bi().await?;
    send.write_all(&[BIDIRECTIONAL, b"to the server"].concat()).await?;
    send.finish()?;
    let Some(AcceptedBi::BidiStream(_, mut stream)) = session.accept_bi().await? else {
        return Err("no stream of the session".into());
    };
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    assert_eq!(text, "to the server");
    stream.write_all(b"to the client").await?;
    // Its drop is its end.
    drop(stream);
    assert_eq!(receive.read_to_end(1000).await?, b"to the client");

    let mut send = pair.client.open_uni().await?;
    send.write_all(&[UNIDIRECTIONAL, b"one way"].concat()).await?;
    send.finish()?;
    let (_, mut stream) = session.accept_uni().await?.ok_or("no stream of the session")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    assert_eq!(text, "one way");

    let mut opened = session.open_uni(session.session_id()).await?;
    opened.write_all(b"and back").await?;
    opened.shutdown().await?;
    let mut of_session = None;
    while of_session.is_none() {
        // Control and QPACK streams come as well, and do not end.
        let mut stream = pair.client.accept_uni().await?;
        let begins = stream.read_chunk(2).await?.ok_or("an empty stream")?;
        if begins == [0x40, 0x54][..] {
            of_session = Some(stream.read_to_end(1000).await?);
        }
    }
    assert_eq!(of_session.as_deref(), Some(&b"\x00and back"[..]));

    pair.client.send_datagram(Bytes::from_static(b"\x00ping"))?;
    let datagram = session.datagram_reader().read_datagram().await?;
    session.datagram_sender().send_datagram(datagram.into_payload())?;
    assert_eq!(pair.client.read_datagram().await?, b"\x00ping"[..]);
    Ok(())
}
