//! `h3` at one end, Godwit's own HTTP/3 at the other.

use crate::support::{answer, ask, client, echo, get, pair, pattern, serve};
use bytes::Bytes;
use godwit::TransportConfig;
use godwit::http3::{Body, Client, Config, Server};
use h3::error::{Code, StreamError};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use std::convert::Infallible;

const LENGTH: usize = 5_000_000;

async fn echo_service(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

#[tokio::test]
async fn a_client_on_h3_has_its_requests_answered() {
    let pair = pair(TransportConfig::default()).await;
    let serving = tokio::spawn({
        let connection = pair.server.clone();
        async move { Server::new().serve_connection(connection, tower::service_fn(echo_service)).await }
    });
    let (mut requests, driver) = client(pair.client.clone()).await;
    for number in 0..20 {
        assert_eq!(ask(&mut requests, &format!("/{number}")).await.unwrap(), "");
    }
    let (mut send, mut receive) =
        requests.send_request(Request::post("https://localhost/").body(()).unwrap()).await.unwrap().split();
    let sending = tokio::spawn(async move {
        send.send_data(pattern(1, LENGTH)).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-end", "1".parse().unwrap());
        send.send_trailers(trailers).await.unwrap();
        send.finish().await.unwrap();
    });
    receive.recv_response().await.unwrap();
    let mut body = Vec::new();
    while let Some(data) = receive.recv_data().await.unwrap() {
        body.extend_from_slice(&crate::support::collect(data));
    }
    assert!(body == pattern(1, LENGTH), "{} bytes came back, and they are others", body.len());
    assert_eq!(receive.recv_trailers().await.unwrap().unwrap()["x-end"], "1");
    sending.await.unwrap();
    drop((receive, requests));
    assert!(driver.await.unwrap().is_h3_no_error());
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_on_h3_answers_requests() {
    let pair = pair(TransportConfig::default()).await;
    let serving = serve(pair.server.clone(), echo);
    let requests = Client::on_connection(pair.client.clone(), "localhost", Config::default()).unwrap();
    for _ in 0..20 {
        let response = requests.send(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "");
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-end", "1".parse().unwrap());
    let announced = trailers.clone();
    let body = Full::new(pattern(1, LENGTH)).with_trailers(async move { Some(Ok(announced)) });
    let response = requests.send(Request::post("/").body(body).unwrap()).await.unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    let body = collected.to_bytes();
    assert!(body == pattern(1, LENGTH), "{} bytes came back, and they are others", body.len());
    requests.close();
    assert!(serving.await.unwrap().unwrap_err().is_h3_no_error());
}

/// A client that gives up in the middle of a body is told of as such.
#[tokio::test]
async fn a_client_that_drops_a_response_cancels_it() {
    let pair = pair(TransportConfig::default()).await;
    let (sender, told) = tokio::sync::oneshot::channel();
    let sender = std::sync::Arc::new(std::sync::Mutex::new(Some(sender)));
    serve(pair.server.clone(), move |_, mut stream| {
        let sender = sender.lock().unwrap().take();
        async move {
            stream.send_response(Response::new(())).await?;
            let error = loop {
                if let Err(error) = stream.send_data(Bytes::from_static(&[7; 10_000])).await {
                    break error;
                }
            };
            drop(sender.map(|sender| sender.send(error)));
            Ok(())
        }
    });
    let requests = Client::on_connection(pair.client.clone(), "localhost", Config::default()).unwrap();
    drop(requests.send(Request::get("/").body(Body::empty()).unwrap()).await.unwrap());
    let error = told.await.unwrap();
    assert!(
        matches!(error, StreamError::RemoteTerminate { code: Code::H3_REQUEST_CANCELLED, .. }),
        "{error:?}"
    );
}

/// A server of Godwit's that shuts down lets a client on `h3` know, and ends what was begun.
#[tokio::test]
async fn a_client_on_h3_is_told_that_the_server_shuts_down() {
    let pair = pair(TransportConfig::default()).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let connection = pair.server.clone();
    let serving = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        Server::new().serve_connection_until(connection, tower::service_fn(echo_service), stopped).await
    });
    let (mut requests, driver) = client(pair.client.clone()).await;
    let mut begun = requests.send_request(get("/")).await.unwrap();
    begun.send_data(Bytes::from_static(b"first, ")).await.unwrap();
    begun.recv_response().await.unwrap();
    stop.send(()).unwrap();
    while requests.send_request(get("/")).await.is_ok() {
        tokio::task::yield_now().await;
    }
    begun.send_data(Bytes::from_static(b"last")).await.unwrap();
    begun.finish().await.unwrap();
    let mut body = Vec::new();
    while let Some(data) = begun.recv_data().await.unwrap() {
        body.extend_from_slice(&crate::support::collect(data));
    }
    assert_eq!(body, b"first, last");
    drop(begun);
    let _ = answer;
    assert!(driver.await.unwrap().is_h3_no_error());
    serving.await.unwrap().unwrap();
}
