//! A service of `hyper` on HTTP/3: `hyper_service CHAIN.pem KEY.pem`. Its function is generic over the body, so that the
//! same one answers what hyper itself takes in.

use std::error::Error;

use bytes::Bytes;
use godwit::http3::{ALPN, Server};
use godwit::{Endpoint, ServerConfig};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};

async fn echo<B: Body>(request: Request<B>) -> Result<Response<Full<Bytes>>, B::Error> {
    let (parts, body) = request.into_parts();
    let mut answer = format!("{} {} had: ", parts.method, parts.uri.path()).into_bytes();
    answer.extend_from_slice(&body.collect().await?.to_bytes());
    Ok(Response::new(Full::new(answer.into())))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut file = || files.next().ok_or("usage: hyper_service CHAIN.pem KEY.pem");
    let config = ServerConfig::from_pem_files(file()?, file()?).alpn([ALPN]).build()?;
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    // hyper's trait calls `&self`, tower's `&mut self`: a closure is all that lies between them.
    let hyper = service_fn(echo);
    let service = tower::service_fn(move |request| hyper.call(request));
    Server::new().serve(&endpoint, service).await;
    Ok(())
}
