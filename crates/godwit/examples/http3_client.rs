//! Fetches a page from "localhost": `http3_client AUTHORITY.pem ADDRESS:PORT PATH`
use godwit::http3::{Body, Client};
use godwit::{ClientConfig, Endpoint};
use http::Request;
use std::{io::Write, net::SocketAddr};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: http3_client AUTHORITY.pem ADDRESS:PORT PATH");
    let (config, server) = (ClientConfig::with_roots_file(arg()?).build()?, arg()?.parse::<SocketAddr>()?);
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = Endpoint::client(any.parse()?)?;
    let client = Client::connect(&endpoint, &config, server, "localhost").await?;
    let mut response = client.send(Request::get(arg()?).body(Body::empty())?).await?;
    println!("{}", response.status());
    while let Some(data) = response.body_mut().data().await? {
        std::io::stdout().write_all(&data)?;
    }
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}
