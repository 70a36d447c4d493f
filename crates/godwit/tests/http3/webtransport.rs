//! WebTransport sessions between our own ends.

use crate::support::{AnyService, World, client_config, client_endpoint, get, service, text};
use bytes::Bytes;
use godwit::TransportConfig;
use godwit::http3::webtransport::{ConnectError, Session, SessionError, StreamError};
use godwit::http3::{Body, Client, Config, DatagramError, ErrorKind, Server};
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

fn config(sessions: usize) -> Config {
    let mut config = Config::default();
    config.max_webtransport_sessions = sessions;
    config
}

/// A service that hands out the sessions it accepts, and says hello to everybody else.
fn accepting() -> (AnyService, mpsc::UnboundedReceiver<Session>) {
    let (sessions, accepted) = mpsc::unbounded_channel();
    let accept = service(move |request: Request<Body>| {
        let sessions = sessions.clone();
        async move {
            if request.uri().path() == "/no" {
                return Ok(Response::builder().status(403).body(Body::from("not here")).unwrap());
            }
            match Session::accept(request) {
                Ok((session, response)) => {
                    sessions.send(session).unwrap();
                    Ok(response)
                }
                Err(_) => Ok(Response::new(Body::from("hello"))),
            }
        }
    });
    (accept, accepted)
}

async fn client(world: &World, sessions: usize) -> Client {
    let to = (world.addr, "localhost");
    Client::connect_with(&client_endpoint(), &client_config(), to, config(sessions)).await.unwrap()
}

fn request(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}")).body(()).unwrap()
}

/// A server, a client, and both ends of a session.
struct Pair {
    _world: World,
    client: Client,
    ours: Session,
    theirs: Session,
}

async fn pair() -> Pair {
    let (service, mut accepted) = accepting();
    let world = World::with(Server::new().config(config(4)), TransportConfig::default(), service);
    let client = client(&world, 4).await;
    let ours = Session::connect(&client, request("/wt")).await.unwrap();
    let theirs = accepted.recv().await.unwrap();
    Pair { _world: world, client, ours, theirs }
}

#[tokio::test]
async fn streams_in_both_directions_from_both_ends() {
    let Pair { client, ours, theirs, _world } = pair().await;
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        let (mut send, mut recv) = from.open_bi().await.unwrap();
        send.write_all(b"question").await.unwrap();
        send.finish().unwrap();
        let (mut answer, mut asked) = to.accept_bi().await.unwrap();
        assert_eq!(asked.read_to_end(100).await.unwrap(), b"question");
        answer.write_all(b"answer").await.unwrap();
        answer.shutdown().await.unwrap();
        let mut heard = String::new();
        recv.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "answer");

        let mut send = from.open_uni().await.unwrap();
        let content = Bytes::from(vec![7; 1_000_000]);
        let writing = tokio::spawn(async move {
            send.write_chunk(content).await.unwrap();
            send.finish().unwrap();
            send.stopped().await
        });
        let mut recv = to.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(1_000_000).await.unwrap(), vec![7; 1_000_000]);
        assert!(writing.await.unwrap().is_ok());
    }
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "hello", "requests go on beside");
}

#[tokio::test]
async fn many_streams_wait_for_the_peers_permission() {
    let Pair { ours, theirs, .. } = pair().await;
    let opening = tokio::spawn(async move {
        for number in 0..400_u32 {
            let mut send = ours.open_uni().await.unwrap();
            send.write_all(&number.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
        }
        ours
    });
    let mut sum = 0;
    for _ in 0..400 {
        let mut recv = theirs.accept_uni().await.unwrap();
        sum += u32::from_be_bytes(recv.read_to_end(4).await.unwrap().try_into().unwrap());
    }
    assert_eq!(sum, 399 * 400 / 2);
    opening.await.unwrap().close(0, "");
}

#[tokio::test]
async fn codes_of_streams_are_those_of_the_application() {
    let Pair { ours, theirs, .. } = pair().await;
    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"a").await.unwrap();
    let (mut their_send, mut their_recv) = theirs.accept_bi().await.unwrap();
    let mut one = [0];
    assert_eq!(their_recv.read(&mut one).await.unwrap(), Some(1));
    send.reset(0xffff_ffff);
    let error = their_recv.read(&mut one).await.unwrap_err();
    assert!(matches!(error, StreamError::Reset(Some(0xffff_ffff))), "{error}");
    recv.stop(30);
    let error = their_send.stopped().await.unwrap_err();
    assert!(matches!(error, StreamError::Stopped(Some(30))), "{error}");
    let error = their_send.write_all(b"more").await.unwrap_err();
    assert!(matches!(error, StreamError::Stopped(Some(30))), "{error}");
    // Dropped, they say 0.
    let (send, recv) = ours.open_bi().await.unwrap();
    let opened = theirs.accept_bi();
    let (their_send, mut their_recv) = opened.await.unwrap();
    drop((send, recv));
    let error = their_recv.read(&mut one).await.unwrap_err();
    assert!(matches!(error, StreamError::Reset(Some(0))), "{error}");
    let error = their_send.stopped().await.unwrap_err();
    assert!(matches!(error, StreamError::Stopped(Some(0))), "{error}");
}

#[tokio::test]
async fn datagrams_in_both_directions() {
    let Pair { ours, theirs, .. } = pair().await;
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        for payload in [&b""[..], b"hello"] {
            from.send_datagram(payload).unwrap();
            assert_eq!(to.receive_datagram().await.unwrap(), payload);
        }
        let max = from.max_datagram_len().unwrap();
        let error = from.send_datagram(&vec![0; max + 100]).unwrap_err();
        assert!(matches!(error, DatagramError::TooLarge { .. }), "{error}");
    }
}

#[tokio::test]
async fn sessions_of_one_connection_are_apart() {
    let (service, mut accepted) = accepting();
    let world = World::with(Server::new().config(config(2)), TransportConfig::default(), service);
    let client = client(&world, 3).await;
    let first = Session::connect(&client, request("/1")).await.unwrap();
    let second = Session::connect(&client, request("/2")).await.unwrap();
    let (their_first, their_second) = (accepted.recv().await.unwrap(), accepted.recv().await.unwrap());
    let (mut one, mut two) = (first.open_uni().await.unwrap(), second.open_uni().await.unwrap());
    two.write_all(b"two").await.unwrap();
    one.write_all(b"one").await.unwrap();
    one.finish().unwrap();
    two.finish().unwrap();
    second.send_datagram(b"2").unwrap();
    first.send_datagram(b"1").unwrap();
    assert_eq!(their_first.accept_uni().await.unwrap().read_to_end(9).await.unwrap(), b"one");
    assert_eq!(their_second.accept_uni().await.unwrap().read_to_end(9).await.unwrap(), b"two");
    assert_eq!(their_first.receive_datagram().await.unwrap(), &b"1"[..]);
    assert_eq!(their_second.receive_datagram().await.unwrap(), &b"2"[..]);
    let error = Session::connect(&client, request("/3")).await.unwrap_err();
    let ConnectError::Failed(error) = error else { panic!("{error}") };
    assert!(error.is_retryable(), "{error}");
    first.close(1, "");
    their_first.closed().await;
    second.send_datagram(b"still here").unwrap();
    assert_eq!(their_second.receive_datagram().await.unwrap(), &b"still here"[..]);
}

#[tokio::test]
async fn a_close_says_why_and_ends_everything() {
    for from_client in [true, false] {
        let Pair { ours, theirs, client, .. } = pair().await;
        let (from, to) = if from_client { (ours, theirs) } else { (theirs, ours) };
        let (mut send, _recv) = to.open_bi().await.unwrap();
        send.write_all(b"a").await.unwrap();
        let (_their_send, mut their_recv) = from.accept_bi().await.unwrap();
        let waiting = tokio::spawn({
            let to = to.clone();
            async move {
                let accepted = to.accept_uni();
                let received = to.receive_datagram();
                (accepted.await.unwrap_err(), received.await.unwrap_err())
            }
        });
        let reading = tokio::spawn(async move {
            their_recv.read_chunk(10).await.unwrap();
            their_recv.read_chunk(10).await.unwrap_err()
        });
        from.close(0xffff_fff0, "that was all");
        from.close(7, "only the first counts");
        let SessionError::Closed { code, reason } = to.closed().await else { panic!("closed by the peer") };
        assert_eq!((code, &*reason), (0xffff_fff0, "that was all"));
        assert!(matches!(from.closed().await, SessionError::ClosedLocally));
        let (accepted, received) = waiting.await.unwrap();
        assert!(matches!((accepted, received), (SessionError::Closed { .. }, SessionError::Closed { .. })));
        let error = reading.await.unwrap();
        assert!(matches!(error, StreamError::Session(SessionError::ClosedLocally)), "{error}");
        let error = send.write_all(b"b").await;
        assert!(matches!(error, Ok(()) | Err(StreamError::Session(_))), "{error:?}");
        assert!(matches!(to.open_bi().await, Err(SessionError::Closed { .. })));
        assert_eq!(to.send_datagram(b"x"), Err(DatagramError::Closed));
        assert_eq!(text(client.send(get("/")).await.unwrap()).await, "hello", "the connection goes on");
    }
}

#[tokio::test]
async fn a_session_whose_handles_are_gone_is_closed_without_a_word() {
    let Pair { ours, theirs, .. } = pair().await;
    let stream = theirs.open_uni().await.unwrap();
    drop(theirs);
    ours.accept_uni().await.unwrap();
    drop(stream);
    let SessionError::Closed { code: 0, reason } = ours.closed().await else { panic!("closed by the peer") };
    assert_eq!(reason, "");
}

#[tokio::test]
async fn a_session_is_asked_to_end_and_goes_on_until_it_does() {
    let Pair { ours, theirs, .. } = pair().await;
    theirs.drain();
    ours.draining().await;
    ours.send_datagram(b"wait").unwrap();
    assert_eq!(theirs.receive_datagram().await.unwrap(), &b"wait"[..]);
    theirs.close(0, "");
    ours.closed().await;
    ours.draining().await;
}

#[tokio::test]
async fn a_refusal_is_an_ordinary_response() {
    let (service, _accepted) = accepting();
    let world = World::with(Server::new().config(config(1)), TransportConfig::default(), service);
    let client = client(&world, 1).await;
    let error = Session::connect(&client, request("/no")).await.unwrap_err();
    let ConnectError::Refused(response) = error else { panic!("{error}") };
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(text(*response).await, "not here");
    Session::connect(&client, request("/yes")).await.unwrap();
}

#[tokio::test]
async fn a_server_has_to_have_it() {
    let (service, _accepted) = accepting();
    let mut config = Config::default();
    config.enable_connect_protocol = true;
    let world = World::with(Server::new().config(config), TransportConfig::default(), service);
    let client = client(&world, 1).await;
    let error = Session::connect(&client, request("/wt")).await.unwrap_err();
    let ConnectError::Failed(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Message, "{error}");
    // An ordinary request is none for a session.
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn a_lost_connection_ends_its_sessions() {
    let Pair { ours, theirs, client, .. } = pair().await;
    let waiting = tokio::spawn(async move { (theirs.accept_bi().await.unwrap_err(), theirs.closed().await) });
    client.close();
    assert!(matches!(waiting.await.unwrap(), (SessionError::Lost(_), SessionError::Lost(_))));
    assert!(matches!(ours.closed().await, SessionError::Lost(_)));
    assert!(matches!(ours.open_uni().await, Err(SessionError::Lost(_))));
}
