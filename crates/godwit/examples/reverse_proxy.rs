//! HTTP/3 in front of another server: `reverse_proxy CERTIFICATE.pem KEY.pem ADDRESS:PORT http://UPSTREAM`
//!
//! Everything goes to the upstream, WebSockets included, apart from `/healthz`.
use godwit::http3::{self, Body, Config};
use godwit::{Endpoint, ServerConfig};
use godwit_proxy::{Proxy, ProxyLayer, Settings};
use http::{Request, Response};
use std::convert::Infallible;
use tower::Layer;

async fn healthy(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::from("ok\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: reverse_proxy CERTIFICATE.pem KEY.pem ADDRESS:PORT UPSTREAM");
    let config = ServerConfig::from_pem_files(arg()?, arg()?).alpn([http3::ALPN]).build()?;
    let endpoint = Endpoint::server(config, arg()?.parse()?)?;
    let proxy = Proxy::new(Settings::to([arg()?.parse()?]))?;
    let layer = ProxyLayer::new(proxy, |request| request.uri.path() != "/healthz");
    let mut config = Config::default();
    config.enable_connect_protocol = true;
    println!("listening on {}", endpoint.local_addr()?);
    http3::Server::new().config(config).serve(&endpoint, layer.layer(tower::service_fn(healthy))).await;
    Ok(())
}
