//! Layers of `tower-http` around a service on HTTP/3: `layered CHAIN.pem KEY.pem FOLDER` serves a folder, notes what is
//! asked for, gives up what takes too long, and compresses.

use std::error::Error;
use std::time::Duration;

use godwit::http3::{ALPN, Body, Server};
use godwit::{Endpoint, ServerConfig};
use http::{Request, Response, StatusCode};
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::services::ServeDir;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

fn note<B>(response: &Response<B>, latency: Duration, _: &tracing::Span) {
    println!("{} after {latency:?}", response.status());
}

async fn never(_: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
    std::future::pending().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("usage: layered CHAIN.pem KEY.pem FOLDER");
    let config = ServerConfig::from_pem_files(argument()?, argument()?).alpn([ALPN]).build()?;
    let files = ServeDir::new(argument()?).fallback(tower::service_fn(never));
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    let service = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http().on_response(note))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(1)))
        .layer(CompressionLayer::new())
        .service(files);
    Server::new().serve(&endpoint, service).await;
    Ok(())
}
