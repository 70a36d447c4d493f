//! `grpc.testing.TestService` as a service of tonic: it does what the cases of gRPC's interoperation tests ask for.

use crate::messages::{
    EchoStatus, Empty, InputRequest, InputResponse, Payload, SimpleRequest, SimpleResponse, StreamingRequest,
    StreamingResponse,
};
use crate::pb::test_service_server::{TestService, TestServiceServer};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::metadata::{Ascii, MetadataKey};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming};
use tower::Service;

/// A header that is to come back in the head of the response.
pub const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";
/// A header that is to come back in the trailers.
pub const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";
/// What one message may ask for.
const LARGEST: i32 = 64 << 20;

/// The service. It has no state.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tests;

type Responses = Pin<Box<dyn Stream<Item = Result<StreamingResponse, Status>> + Send>>;

#[tonic::async_trait]
impl TestService for Tests {
    type StreamingOutputCallStream = Responses;
    type FullDuplexCallStream = Responses;
    type HalfDuplexCallStream = Responses;

    async fn empty_call(&self, request: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(echo(&request, Response::new(Empty {})))
    }

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        let asked = request.get_ref();
        wanted(asked.response_status.as_ref())?;
        let response = SimpleResponse { payload: Some(payload(asked.response_size)?) };
        Ok(echo(&request, Response::new(response)))
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingRequest>,
    ) -> Result<Response<Responses>, Status> {
        let asked = request.into_inner();
        wanted(asked.response_status.as_ref())?;
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(async move { answer(asked, &sender).await });
        Ok(Response::new(Box::pin(ReceiverStream::new(responses))))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<InputRequest>>,
    ) -> Result<Response<InputResponse>, Status> {
        let mut requests = request.into_inner();
        let mut size = 0_usize;
        while let Some(request) = requests.message().await? {
            size += request.payload.map_or(0, |payload| payload.body.len());
        }
        let size = i32::try_from(size).map_err(|_| Status::out_of_range("more than 2 GiB"))?;
        Ok(Response::new(InputResponse { aggregated_payload_size: size }))
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let head = echo(&request, Response::new(()));
        let mut requests = request.into_inner();
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                match requests.message().await {
                    Ok(Some(asked)) => {
                        if let Err(status) = wanted(asked.response_status.as_ref()) {
                            return drop(sender.send(Err(status)).await);
                        }
                        if answer(asked, &sender).await.is_none() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(status) => return drop(sender.send(Err(status)).await),
                }
            }
        });
        Ok(head.map(|()| Box::pin(ReceiverStream::new(responses)) as Responses))
    }

    async fn half_duplex_call(
        &self,
        request: Request<Streaming<StreamingRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let mut requests = request.into_inner();
        let mut all = Vec::new();
        while let Some(asked) = requests.message().await? {
            all.push(asked);
        }
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(async move {
            for asked in all {
                answer(asked, &sender).await?;
            }
            Some(())
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(responses))))
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("on purpose"))
    }
}

/// Sends the responses that a message asks for; `None` if nobody wants them any more.
async fn answer(
    asked: StreamingRequest,
    sender: &mpsc::Sender<Result<StreamingResponse, Status>>,
) -> Option<()> {
    for parameters in asked.response_parameters {
        let pause = u64::try_from(parameters.interval_us).unwrap_or(0);
        tokio::time::sleep(Duration::from_micros(pause)).await;
        let response = payload(parameters.size).map(|payload| StreamingResponse { payload: Some(payload) });
        sender.send(response).await.ok()?;
    }
    Some(())
}

fn payload(size: i32) -> Result<Payload, Status> {
    match usize::try_from(size) {
        Ok(length) if size <= LARGEST => Ok(Payload::zeros(length)),
        _ => Err(Status::invalid_argument(format!("a payload of {size} bytes was asked for"))),
    }
}

/// The status that the client asks for, if it does.
fn wanted(status: Option<&EchoStatus>) -> Result<(), Status> {
    match status.filter(|status| status.code != 0) {
        Some(status) => Err(Status::new(Code::from_i32(status.code), status.message.clone())),
        None => Ok(()),
    }
}

/// Gives back in the head what the request has for that.
fn echo<T, U>(request: &Request<T>, mut response: Response<U>) -> Response<U> {
    let key = MetadataKey::<Ascii>::from_static(ECHO_INITIAL);
    if let Some(value) = request.metadata().get(&key) {
        response.metadata_mut().insert(key, value.clone());
    }
    response
}

/// The service behind what tonic has no words for: trailers of calls that end well.
pub fn routes() -> Routes {
    Routes::new(EchoTrailers { service: TestServiceServer::new(Tests) })
}

/// Gives back in the trailers what the request has for that.
#[derive(Debug, Clone)]
struct EchoTrailers<S> {
    service: S,
}

impl<S: NamedService> NamedService for EchoTrailers<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for EchoTrailers<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Future: Send + 'static>,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let value = request.headers().get(ECHO_TRAILING).cloned();
        let response = self.service.call(request);
        Box::pin(async move {
            let Some(value) = value else { return response.await };
            Ok(response.await?.map(|body| {
                Body::new(body.map_frame(move |mut frame| {
                    if let Some(trailers) = frame.trailers_mut() {
                        trailers.insert(ECHO_TRAILING, value.clone());
                    }
                    frame
                }))
            }))
        })
    }
}
