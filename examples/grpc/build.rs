//! Generates clients and servers as tonic does from a `.proto` file, without the compiler for those: the services stand
//! here, their messages in `src/messages.rs`.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let empty = ("Empty", "Empty");
    let test = Service::builder()
        .name("TestService")
        .package("grpc.testing")
        .method(method("EmptyCall", "empty_call", empty).build())
        .method(method("UnaryCall", "unary_call", ("SimpleRequest", "SimpleResponse")).build())
        .method(
            method("StreamingOutputCall", "streaming_output_call", ("StreamingRequest", "StreamingResponse"))
                .server_streaming()
                .build(),
        )
        .method(
            method("StreamingInputCall", "streaming_input_call", ("InputRequest", "InputResponse"))
                .client_streaming()
                .build(),
        )
        .method(
            method("FullDuplexCall", "full_duplex_call", ("StreamingRequest", "StreamingResponse"))
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(
            method("HalfDuplexCall", "half_duplex_call", ("StreamingRequest", "StreamingResponse"))
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(method("UnimplementedCall", "unimplemented_call", empty).build())
        .build();
    let unimplemented = Service::builder()
        .name("UnimplementedService")
        .package("grpc.testing")
        .method(method("UnimplementedCall", "unimplemented_call", empty).build())
        .build();
    Builder::new().compile(&[test, unimplemented]);
}

fn method(route: &str, name: &str, (input, output): (&str, &str)) -> tonic_build::manual::MethodBuilder {
    Method::builder()
        .name(name)
        .route_name(route)
        .input_type(format!("crate::messages::{input}"))
        .output_type(format!("crate::messages::{output}"))
        .codec_path("tonic_prost::ProstCodec")
}
