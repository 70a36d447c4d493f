//! Deadlines, kept by either end.

use crate::support::{Front, Http3, LIMIT, routes};
use godwit_grpc::{Channel, DeadlineLayer};
use grpc::messages::{ResponseParameters, StreamingRequest};
use grpc::pb::test_service_client::TestServiceClient;
use std::time::Duration;
use tonic::{Code, Request};
use tower::Layer;

/// Asks for one response at once, and another in an hour.
fn slow() -> StreamingRequest {
    let later = ResponseParameters { size: 1, interval_us: i32::MAX };
    let at_once = ResponseParameters { size: 1, interval_us: 0 };
    StreamingRequest { response_parameters: vec![at_once, later], ..StreamingRequest::default() }
}

fn limited(time: Duration) -> Request<StreamingRequest> {
    let mut request = Request::new(slow());
    request.set_timeout(time);
    request
}

async fn runs_out(calls: &mut TestServiceClient<impl grpc::cases::Channel>, time: Duration) -> Code {
    let ended = async {
        match calls.streaming_output_call(limited(time)).await {
            Ok(response) => {
                let mut responses = response.into_inner();
                loop {
                    match responses.message().await {
                        Ok(Some(_)) => {}
                        Ok(None) => return Code::Ok,
                        Err(status) => return status.code(),
                    }
                }
            }
            Err(status) => status.code(),
        }
    };
    tokio::time::timeout(LIMIT, ended).await.unwrap()
}

#[tokio::test]
async fn a_channel_keeps_deadlines_in_the_middle_of_a_response() {
    let server = Http3::serve(routes());
    let mut calls = TestServiceClient::new(Channel::new(server.client().await));
    for time in [Duration::ZERO, Duration::from_millis(300)] {
        assert_eq!(runs_out(&mut calls, time).await, Code::DeadlineExceeded);
    }
}

#[tokio::test]
async fn a_server_keeps_the_deadlines_that_clients_name() {
    let server = Http3::serve(DeadlineLayer.layer(routes()));
    // A client that waits for ever.
    let mut calls = TestServiceClient::new(server.client().await);
    for time in [Duration::ZERO, Duration::from_millis(300)] {
        assert_eq!(runs_out(&mut calls, time).await, Code::DeadlineExceeded);
    }
    let mut request = Request::new(slow());
    request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    assert_eq!(calls.streaming_output_call(request).await.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn a_call_in_time_is_left_alone() {
    let mut server = Front::serve(routes()).await;
    let client = godwit_client::Client::builder().root_file(&server.authority).build().unwrap();
    let mut calls = TestServiceClient::new(Channel::new(client.clone()).origin(server.origin()));
    let mut request = Request::new(StreamingRequest::of(&[5, 6], 0));
    request.set_timeout(LIMIT);
    let mut responses = calls.streaming_output_call(request).await.unwrap().into_inner();
    let mut count = 0;
    while responses.message().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 2);
    client.close().await;
    server.running.shutdown(LIMIT).await;
}
