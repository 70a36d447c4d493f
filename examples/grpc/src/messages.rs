//! The messages of `grpc.testing.TestService`, as far as its cases need them: names and numbers of the fields are those of
//! gRPC's interoperation tests.

/// Nothing.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Empty {}

/// Bytes that mean nothing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    /// There is but one: 0, bytes that can be compressed.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(bytes = "bytes", tag = "2")]
    pub body: bytes::Bytes,
}

/// The status that the server is to answer with.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EchoStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A wrapped `bool`, which can be absent.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct BoolValue {
    #[prost(bool, tag = "1")]
    pub value: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleRequest {
    #[prost(int32, tag = "1")]
    pub response_type: i32,
    #[prost(int32, tag = "2")]
    pub response_size: i32,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Payload>,
    #[prost(message, optional, tag = "6")]
    pub response_compressed: Option<BoolValue>,
    #[prost(message, optional, tag = "7")]
    pub response_status: Option<EchoStatus>,
    #[prost(message, optional, tag = "8")]
    pub expect_compressed: Option<BoolValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleResponse {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InputRequest {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct InputResponse {
    #[prost(int32, tag = "1")]
    pub aggregated_payload_size: i32,
}

/// One response of a stream.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ResponseParameters {
    #[prost(int32, tag = "1")]
    pub size: i32,
    #[prost(int32, tag = "2")]
    pub interval_us: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamingRequest {
    #[prost(int32, tag = "1")]
    pub response_type: i32,
    #[prost(message, repeated, tag = "2")]
    pub response_parameters: Vec<ResponseParameters>,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Payload>,
    #[prost(message, optional, tag = "7")]
    pub response_status: Option<EchoStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamingResponse {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

impl Payload {
    /// So many zeros.
    pub fn zeros(size: usize) -> Payload {
        Payload { kind: 0, body: vec![0; size].into() }
    }
}

impl StreamingRequest {
    /// Asks for responses of these sizes, with so many zeros.
    pub fn of(sizes: &[i32], zeros: usize) -> StreamingRequest {
        let parameters = sizes.iter().map(|&size| ResponseParameters { size, interval_us: 0 }).collect();
        StreamingRequest {
            response_parameters: parameters,
            payload: Some(Payload::zeros(zeros)),
            ..StreamingRequest::default()
        }
    }
}
