//! An `axum` router on HTTP/3: `axum_router CHAIN.pem KEY.pem`. It is a service as it is, and needs no adapter.

use std::error::Error;

use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::{get, post};
use godwit::http3::{ALPN, Server};
use godwit::{Endpoint, ServerConfig};
use std::collections::HashMap;

async fn greet(Path(name): Path<String>, Query(words): Query<HashMap<String, String>>) -> String {
    let word = words.get("word").map_or("hello", String::as_str);
    format!("{word}, {name}\n")
}

async fn reverse(text: String) -> Result<String, StatusCode> {
    if text.is_empty() { Err(StatusCode::UNPROCESSABLE_ENTITY) } else { Ok(text.chars().rev().collect()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut file = || files.next().ok_or("usage: axum_router CHAIN.pem KEY.pem");
    let config = ServerConfig::from_pem_files(file()?, file()?).alpn([ALPN]).build()?;
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    let router = Router::new().route("/greet/{name}", get(greet)).route("/reverse", post(reverse));
    Server::new().serve(&endpoint, router).await;
    Ok(())
}
