//! Serves a folder, and a service of its own, over HTTP/3, HTTP/2 and HTTP/1.1 on one port: `front_door FOLDER`.
//!
//! The certificate is made by an authority of this user's own; give `.certificate(chain, key)` for a real one.

use std::error::Error;
use std::time::Duration;

use godwit_front::{BoxBody, FolderSettings, Server};
use http::{Request, Response};
use http_body_util::BodyExt;

async fn hello(request: Request<BoxBody>) -> Result<Response<String>, Box<dyn Error + Send + Sync>> {
    let (version, method) = (request.version(), request.method().clone());
    let bytes = request.into_body().collect().await?.to_bytes().len();
    Ok(Response::new(format!("hello, {method} over {version:?} with {bytes} bytes\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: front_door FOLDER")?;
    let server = Server::builder()
        .listen("127.0.0.1:0".parse()?)
        .service("/hello", tower::service_fn(hello))
        .files("/", FolderSettings::new(folder))
        .bind()?;
    let mut running = server.start().await?;
    println!("listening on {}", running.addresses()[0]);
    tokio::signal::ctrl_c().await?;
    running.shutdown(Duration::from_secs(5)).await;
    println!("served");
    Ok(())
}
