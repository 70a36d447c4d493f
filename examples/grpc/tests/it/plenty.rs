//! Many calls on one connection, and the end of their server.

use crate::support::{Http3, LIMIT, routes};
use godwit_grpc::Channel;
use grpc::messages::{Empty, StreamingRequest};
use grpc::pb::test_service_client::TestServiceClient;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

#[tokio::test]
async fn a_thousand_calls_have_one_connection() {
    let server = Http3::serve(routes());
    let client = server.client().await;
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        let mut client = TestServiceClient::new(Channel::new(client.clone()));
        calls.spawn(async move { client.empty_call(Empty {}).await.map(drop) });
    }
    let mut done = 0;
    while let Some(ended) = calls.join_next().await {
        ended.unwrap().unwrap();
        done += 1;
    }
    assert_eq!(done, 1000);
    assert!(!client.is_closed());
}

#[tokio::test]
async fn a_server_that_goes_finishes_its_calls_and_names_those_that_can_be_made_again() {
    let mut server = Http3::serve(routes());
    let client = server.client().await;
    let mut calls = TestServiceClient::new(Channel::new(client.clone()));
    let (sender, requests) = mpsc::channel(1);
    let mut responses = calls.full_duplex_call(ReceiverStream::new(requests)).await.unwrap().into_inner();
    sender.send(StreamingRequest::of(&[10], 10)).await.unwrap();
    assert!(responses.message().await.unwrap().is_some());

    server.stop();
    let gone = async {
        while !client.is_closed() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.unwrap();
    let status = calls.empty_call(Empty {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().contains("can be sent on another connection"), "{status}");

    // What was under way goes on to its end.
    sender.send(StreamingRequest::of(&[20], 10)).await.unwrap();
    assert!(responses.message().await.unwrap().is_some());
    drop(sender);
    assert!(responses.message().await.unwrap().is_none());
    tokio::time::timeout(LIMIT, server.stopped()).await.unwrap();
}

#[tokio::test]
async fn calls_of_a_connection_that_is_lost_can_be_made_again() {
    let server = Http3::serve(routes());
    let client = server.client().await;
    let mut calls = TestServiceClient::new(Channel::new(client.clone()));
    let (_sender, requests) = mpsc::channel(1);
    let mut responses = calls.full_duplex_call(ReceiverStream::new(requests)).await.unwrap().into_inner();
    client.close();
    assert_eq!(responses.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(calls.empty_call(Empty {}).await.unwrap_err().code(), Code::Unavailable);
}
