//! Fetches a URL over HTTP/3 alone: `fetch AUTHORITY.pem URL [BODY]`, by POST if there is a body.

use godwit_client::{Client, Versions};
use http_body_util::BodyExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: fetch AUTHORITY.pem URL [BODY]");
    let client = Client::builder().root_file(arg()?).versions(Versions::Http3).build()?;
    let url = arg()?;
    let request = match arg() {
        Ok(body) => client.post(url).body(body),
        Err(_) => client.get(url),
    };
    let response = request.header("accept-encoding", "gzip").send().await?.into_http();
    let coding = response.headers().get("content-encoding").and_then(|coding| coding.to_str().ok());
    println!("{:?} {} {}", response.version(), response.status(), coding.unwrap_or("plain"));
    let body = response.into_body().collect().await?.to_bytes();
    println!("{} bytes: {}", body.len(), String::from_utf8_lossy(&body).trim_end());
    client.close().await;
    Ok(())
}
