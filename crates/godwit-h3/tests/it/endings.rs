//! Streams that are given up, connections that end, and what each side is told of it.

use crate::support::{
    ANY_PORT, ServerConnection, answer, ask, client, client_builder, collect, echo, echoing, get, pair,
    pattern, serve, server_builder,
};
use bytes::Bytes;
use godwit::{ConnectionErrorKind, Endpoint, TransportConfig};
use h3::error::{Code, ConnectionError, StreamError};
use h3::quic::ConnectionErrorIncoming;
use http::Response;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::oneshot;

/// The code with which the peer ended this direction of a stream.
fn terminated<T>(result: Result<T, StreamError>) -> Code {
    match result.err() {
        Some(StreamError::RemoteTerminate { code, .. }) => code,
        other => panic!("not ended by the peer: {other:?}"),
    }
}

/// What a server's handler tells its test.
fn channel<T>() -> (impl Fn(T) + Clone, tokio::sync::mpsc::UnboundedReceiver<T>) {
    let (sender, told) = tokio::sync::mpsc::unbounded_channel();
    (move |value| drop(sender.send(value)), told)
}

#[tokio::test]
async fn who_gives_up_a_request_names_the_code() {
    let pair = pair(TransportConfig::default()).await;
    let (tell, mut told) = channel();
    serve(pair.server.clone(), move |_, mut stream| {
        let tell = tell.clone();
        async move {
            stream.send_response(Response::new(())).await?;
            while stream.recv_data().await.map_err(|error| tell(terminated(Err::<(), _>(error)))).is_ok() {}
            Ok(())
        }
    });
    let (mut requests, _driver) = client(pair.client.clone()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.recv_response().await.unwrap();
    stream.stop_stream(Code::H3_REQUEST_CANCELLED);
    assert_eq!(told.recv().await, Some(Code::H3_REQUEST_CANCELLED));
}

#[tokio::test]
async fn who_wants_no_more_of_a_request_names_the_code() {
    let pair = pair(TransportConfig::default()).await;
    serve(pair.server.clone(), |_, mut stream| async move {
        stream.stop_sending(Code::H3_EXCESSIVE_LOAD);
        stream.send_response(Response::new(())).await?;
        Ok(stream.finish().await?)
    });
    let (mut requests, _driver) = client(pair.client.clone()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    let stopped = loop {
        let sent = stream.send_data(pattern(1, 100_000)).await;
        if sent.is_err() {
            break sent;
        }
    };
    assert_eq!(terminated(stopped), Code::H3_EXCESSIVE_LOAD);
    // The answer is there all the same.
    assert_eq!(answer(&mut stream).await.unwrap(), "");
}

#[tokio::test]
async fn a_response_that_is_dropped_is_stopped_and_a_request_ended() {
    let pair = pair(TransportConfig::default()).await;
    let (tell, mut told) = channel();
    serve(pair.server.clone(), move |_, mut stream| {
        let tell = tell.clone();
        async move {
            stream.send_response(Response::new(())).await?;
            assert!(stream.recv_data().await?.is_none(), "what was not sent is there");
            let stopped = loop {
                let sent = stream.send_data(pattern(1, 100_000)).await;
                if sent.is_err() {
                    break sent;
                }
            };
            tell(terminated(stopped));
            Ok(())
        }
    });
    let (mut requests, _driver) = client(pair.client.clone()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.recv_response().await.unwrap();
    drop(stream);
    assert_eq!(told.recv().await, Some(Code::H3_REQUEST_CANCELLED));
    drop(requests);
}

#[tokio::test]
async fn a_response_that_is_dropped_by_its_server_ends_but_not_in_a_panic_nor_in_a_frame() {
    let pair = pair(TransportConfig::default()).await;
    serve(pair.server.clone(), |request, mut stream| async move {
        stream.send_response(Response::new(())).await?;
        stream.send_data(Bytes::from_static(b"beginning")).await?;
        match request.uri().path() {
            "/panic" => panic!("a handler of a test panics, as it should"),
            "/part" => {
                // More than is taken at once.
                let mut rest = pin!(stream.send_data(pattern(1, 64 << 20)));
                assert!(rest.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            _ => {}
        }
        Ok(())
    });
    let (mut requests, _driver) = client(pair.client.clone()).await;
    assert_eq!(ask(&mut requests, "/").await.unwrap(), "beginning");
    for (path, code) in [("/panic", Code::H3_INTERNAL_ERROR), ("/part", Code::H3_REQUEST_CANCELLED)] {
        let mut stream = requests.send_request(get(path)).await.unwrap();
        stream.finish().await.unwrap();
        let ended = async {
            stream.recv_response().await?;
            while stream.recv_data().await?.is_some() {}
            Ok(())
        };
        assert_eq!(terminated(ended.await), code, "{path}");
    }
}

#[tokio::test]
async fn a_server_that_shuts_down_ends_what_it_has_begun() {
    let pair = pair(TransportConfig::default()).await;
    let (go_on, may_go_on) = oneshot::channel();
    let connection = pair.server.clone();
    let serving = tokio::spawn(async move {
        let mut connection = ServerConnection::new(godwit_h3::Connection::new(connection)).await.unwrap();
        let resolver = connection.accept().await.unwrap().unwrap();
        connection.shutdown(0).await.unwrap();
        let answering = tokio::spawn(async move {
            let (request, stream) = resolver.resolve_request().await.unwrap();
            may_go_on.await.unwrap();
            echo(request, stream).await.unwrap();
        });
        let end = loop {
            match connection.accept().await {
                Ok(Some(_)) => panic!("a request came after the last"),
                Ok(None) => {}
                Err(error) => break error,
            }
        };
        answering.await.unwrap();
        end
    });
    let (mut requests, driver) = client(pair.client.clone()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.send_data(Bytes::from_static(b"last words")).await.unwrap();
    stream.finish().await.unwrap();
    // Until the client knows, it asks for more; what it is told then is that nothing was done.
    loop {
        match requests.send_request(get("/")).await {
            Err(StreamError::RemoteClosing) => break,
            Err(error) => panic!("{error}"),
            Ok(mut refused) => {
                let _ = refused.finish().await;
                match refused.recv_response().await {
                    Err(StreamError::RemoteTerminate { code: Code::H3_REQUEST_REJECTED, .. }) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    go_on.send(()).unwrap();
    assert_eq!(answer(&mut stream).await.unwrap(), "last words");
    drop((stream, requests));
    assert!(driver.await.unwrap().is_h3_no_error());
    assert!(serving.await.unwrap().is_h3_no_error());
}

#[tokio::test]
async fn both_ends_tell_that_nothing_was_wrong() {
    let pair = pair(TransportConfig::default()).await;
    let serving = serve(pair.server.clone(), echo);
    let (mut requests, driver) = client(pair.client.clone()).await;
    assert_eq!(ask(&mut requests, "/").await.unwrap(), "");
    drop(requests);
    assert!(driver.await.unwrap().is_h3_no_error());
    assert!(serving.await.unwrap().unwrap_err().is_h3_no_error());
    let reason = pair.server.closed().await;
    assert_eq!(reason.application_code(), Some(Code::H3_NO_ERROR.value()));
    pair.client_endpoint.wait_idle().await;
}

#[tokio::test]
async fn codes_of_the_peer_come_as_they_are() {
    let (pair, mut requests) = echoing(TransportConfig::default()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.recv_response().await.unwrap();
    pair.server.close(0x1234_u32, b"for a test");
    let error = stream.recv_data().await.map(|data| data.map(collect)).unwrap_err();
    let StreamError::ConnectionError(ConnectionError::Remote(ConnectionErrorIncoming::ApplicationClose {
        error_code: 0x1234,
    })) = error
    else {
        panic!("{error:?}");
    };
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_millis(300);
    transport.keep_alive = None;
    let pair = pair(transport).await;
    let (_requests, driver) = client(pair.client.clone()).await;
    let end = driver.await.unwrap();
    assert!(matches!(end, ConnectionError::Timeout), "{end:?}");
}

/// What `h3` has no words for can be found out: here an end that has an error of the transport.
#[tokio::test]
async fn other_causes_can_be_seen() {
    let server = Endpoint::server(server_builder().build().unwrap(), ANY_PORT).unwrap();
    let client_endpoint = Endpoint::client(ANY_PORT).unwrap();
    let config = client_builder().build().unwrap();
    let connecting = client_endpoint.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (connection, accepted) = tokio::join!(connecting, accepting);
    let (_requests, driver) = client(connection.unwrap()).await;
    let _accepted = accepted.unwrap();
    // Nobody drives the client's endpoint from now on.
    client_endpoint.close(0_u32, b"");
    let end = driver.await.unwrap();
    let ConnectionError::Remote(ConnectionErrorIncoming::Undefined(cause)) = end else {
        panic!("{end:?}");
    };
    let cause = cause.downcast_ref::<godwit::ConnectionError>().unwrap();
    assert_eq!(cause.kind(), ConnectionErrorKind::ClosedLocally);
}
