//! Calls that end well: what tonic offers besides, over HTTP/3.

use crate::support::{Http3, LIMIT, routes};
use godwit_grpc::Channel;
use grpc::messages::{Payload, SimpleRequest};
use grpc::pb::test_service_client::TestServiceClient;
use grpc::pb::test_service_server::TestServiceServer;
use grpc::service::Tests;
use http::Request;
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tonic::codec::CompressionEncoding::{Gzip, Zstd};
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

fn large(size: usize) -> SimpleRequest {
    let payload = Some(Payload::zeros(size));
    SimpleRequest { response_size: i32::try_from(size).unwrap(), payload, ..SimpleRequest::default() }
}

#[tokio::test]
async fn messages_are_compressed_both_ways() {
    for coding in [Gzip, Zstd] {
        let service = TestServiceServer::new(Tests).accept_compressed(coding).send_compressed(coding);
        let server = Http3::serve(Routes::new(service));
        let client = server.client().await;
        let mut calls = TestServiceClient::new(Channel::new(client.clone()))
            .accept_compressed(coding)
            .send_compressed(coding);
        let response = calls.unary_call(large(1 << 20)).await.unwrap().into_inner();
        assert_eq!(response.payload, Some(Payload::zeros(1 << 20)));
        let stats = client.connection().stats();
        assert!(stats.bytes_sent < 1 << 18 && stats.bytes_received < 1 << 18, "{stats:?}");
    }
}

#[tokio::test]
async fn messages_may_be_large() {
    const SIZE: usize = 5 << 20;
    let service = TestServiceServer::new(Tests).max_decoding_message_size(16 << 20);
    let server = Http3::serve(Routes::new(service));
    let client = server.client().await;
    let mut calls = TestServiceClient::new(client.clone()).max_decoding_message_size(16 << 20);
    let response = calls.unary_call(large(SIZE)).await.unwrap().into_inner();
    assert_eq!(response.payload, Some(Payload::zeros(SIZE)));
    // A server that takes less says so, and the rest of the message is not waited for.
    let server = Http3::serve(routes());
    let status = TestServiceClient::new(server.client().await).unary_call(large(SIZE)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::OutOfRange, "{status}");
    // A client that sends less says so.
    let mut calls = TestServiceClient::new(Channel::new(client)).max_encoding_message_size(1 << 20);
    let status = calls.unary_call(large(SIZE)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::OutOfRange, "{status}");
}

#[tokio::test]
async fn health_and_reflection_are_services_like_others() {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<TestServiceServer<Tests>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .unwrap();
    let server = Http3::serve(routes().add_service(health).add_service(reflection));
    let channel = server.client().await;

    let name = "grpc.testing.TestService".to_owned();
    let asked = HealthCheckRequest { service: name.clone() };
    let mut health = HealthClient::new(channel.clone());
    assert_eq!(health.check(asked.clone()).await.unwrap().into_inner().status, 1);
    // A stream that goes on while the server has nothing to say.
    let mut watched = health.watch(asked).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status, 1);
    reporter.set_not_serving::<TestServiceServer<Tests>>().await;
    assert_eq!(watched.message().await.unwrap().unwrap().status, 2);

    let asked = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(channel);
    let response = reflection.server_reflection_info(tokio_stream::iter([asked])).await.unwrap();
    let response = response.into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = response.message_response else {
        panic!("{response:?}")
    };
    assert!(list.service.iter().any(|service| service.name == "grpc.health.v1.Health"), "{list:?}");
}

#[tokio::test]
async fn a_status_without_messages_is_a_head_and_nothing_else() {
    let server = Http3::serve(routes());
    let client = server.client().await;
    let request = Request::post("/grpc.testing.TestService/UnimplementedCall")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from(&[0_u8; 5][..]))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(
        (response.status(), response.headers()["grpc-status"].as_bytes()),
        (http::StatusCode::OK, &b"12"[..])
    );
    assert!(response.body().is_end_stream());
    let rest = tokio::time::timeout(LIMIT, response.into_body().collect()).await.unwrap().unwrap();
    assert!(rest.trailers().is_none() && rest.to_bytes().is_empty());
}
