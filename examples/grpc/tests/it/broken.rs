//! Exchanges that are given up: who hears of it, and what it means.

use crate::support::{Http3, Identity, LIMIT, routes};
use godwit::http3::{Body, ErrorCode};
use godwit_grpc::Channel;
use grpc::messages::{Empty, StreamingRequest};
use grpc::pb::test_service_client::TestServiceClient;
use http::{Request, Response};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

/// A server that answers every request with the head of a response if `begins`, and a reset with `code`.
async fn resetting(begins: bool, code: u64) -> TestServiceClient<Channel<godwit::http3::Client>> {
    let identity = Identity::new();
    let endpoint = identity.endpoint();
    let address = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut control = connection.open_uni().await.unwrap();
        // The control stream, and no settings (RFC 9114 section 6.2.1).
        control.write_all(&[0, 4, 0]).await.unwrap();
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            if begins {
                // HEADERS: nothing of the dynamic table, `:status: 200`, and `content-type: application/grpc`.
                let mut head = vec![1, 0, 0, 0, 0xd9, 0x5f, 0x1d, 16];
                head.extend_from_slice(b"application/grpc");
                head[1] = u8::try_from(head.len() - 2).unwrap();
                send.write_all(&head).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let _ = recv.read(&mut [0; 1000]).await;
            send.reset(godwit::ApplicationCode::try_from(code).unwrap());
        }
    });
    TestServiceClient::new(Channel::new(identity.connect(address).await))
}

#[tokio::test]
async fn the_code_of_a_reset_says_what_it_means() {
    for (code, meaning) in [
        (ErrorCode::H3_REQUEST_REJECTED, Code::Unavailable),
        (ErrorCode::H3_REQUEST_CANCELLED, Code::Cancelled),
        (ErrorCode::H3_EXCESSIVE_LOAD, Code::ResourceExhausted),
        (ErrorCode::H3_INTERNAL_ERROR, Code::Internal),
        (ErrorCode::H3_NO_ERROR, Code::Internal),
    ] {
        let mut calls = resetting(false, code.value()).await;
        let status = calls.empty_call(Empty {}).await.unwrap_err();
        assert_eq!(status.code(), meaning, "{code}: {status}");
        let mut calls = resetting(true, code.value()).await;
        let response = calls.streaming_output_call(StreamingRequest::of(&[], 0)).await;
        let status = match response {
            Ok(response) => response.into_inner().message().await.unwrap_err(),
            Err(status) => status,
        };
        assert_eq!(status.code(), meaning, "{code}: {status}");
    }
}

/// Tells of its end.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, waited).await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let (ended, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(None)));
    let (at_end, code) = (Arc::clone(&ended), Arc::clone(&seen));
    let server = Http3::serve(tower::service_fn(move |request: Request<Body>| {
        let (alive, code) = (Alive(Arc::clone(&at_end)), Arc::clone(&code));
        async move {
            let _alive = alive;
            tokio::spawn(async move {
                let mut body = request.into_body();
                let error = loop {
                    match body.frame().await {
                        Some(Err(error)) => break error.code(),
                        Some(Ok(_)) => {}
                        None => break None,
                    }
                };
                *code.lock().unwrap() = error;
            });
            std::future::pending::<()>().await;
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        }
    }));
    let mut calls = TestServiceClient::new(Channel::new(server.client().await));
    let (_sender, requests) = mpsc::channel(1);
    let call = calls.streaming_input_call(ReceiverStream::new(requests));
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    until(|| ended.load(Ordering::SeqCst) == 1).await;
    until(|| *seen.lock().unwrap() == Some(ErrorCode::H3_REQUEST_CANCELLED)).await;
}

#[tokio::test]
async fn a_service_that_panics_is_an_internal_error() {
    let server = Http3::serve(tower::service_fn(|request: Request<Body>| async move {
        assert!(request.uri().path().is_empty(), "as is expected here");
        Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
    }));
    let mut calls = TestServiceClient::new(Channel::new(server.client().await));
    assert_eq!(calls.empty_call(Empty {}).await.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let client = godwit_client::Client::builder().build().unwrap();
    let origin = format!("https://127.0.0.1:{port}").parse().unwrap();
    let mut calls = TestServiceClient::new(Channel::new(client).origin(origin));
    let status = calls.empty_call(Empty {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

#[tokio::test]
async fn nothing_is_reset_when_a_call_is_over() {
    let server = Http3::serve(routes());
    let client = server.client().await;
    let mut calls = TestServiceClient::new(Channel::new(client.clone()));
    // The response is complete, with the request's stream still open: the server stops it, the client has nothing to add.
    let (sender, requests) = mpsc::channel(1);
    let wanted = grpc::messages::EchoStatus { code: 9, message: "enough".into() };
    sender
        .send(StreamingRequest { response_status: Some(wanted), ..StreamingRequest::default() })
        .await
        .unwrap();
    let response = calls.full_duplex_call(ReceiverStream::new(requests)).await;
    let status = match response {
        Ok(response) => response.into_inner().message().await.unwrap_err(),
        Err(status) => status,
    };
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "enough"));
    tokio::time::timeout(LIMIT, sender.closed()).await.unwrap();
    assert!(calls.empty_call(Empty {}).await.is_ok());
}
