//! Answers every request: `http3_server CERTIFICATE.pem KEY.pem ADDRESS:PORT`
use godwit::http3::{self, Body};
use godwit::{Endpoint, ServerConfig};
use http::{Request, Response};
use std::convert::Infallible;

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let text = format!("You asked for {}.\n", request.uri().path());
    Ok(Response::new(Body::from(text)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: http3_server CERTIFICATE.pem KEY.pem ADDRESS:PORT");
    let config = ServerConfig::from_pem_files(arg()?, arg()?).alpn([http3::ALPN]).build()?;
    let endpoint = Endpoint::server(config, arg()?.parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    http3::Server::new().serve(&endpoint, tower::service_fn(answer)).await;
    Ok(())
}
