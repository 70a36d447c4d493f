//! A client on the `h3` crate: prints the status of an answer to the standard error, its body to the standard output.
//!
//! `h3_client AUTHORITY.pem https://HOST:PORT/PATH`, trusting that authority alone. With SSLKEYLOGFILE in its environment
//! it leaves the keys there for whoever looks at the packets.

use bytes::Buf;
use godwit_h3::godwit::{ClientConfig, Endpoint, rustls};
use http::{Request, Uri};
use std::error::Error;
use std::future::poll_fn;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

type Requests = h3::client::SendRequest<godwit_h3::OpenStreams, bytes::Bytes>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [authority, url] = arguments.as_slice() else {
        return Err("usage: h3_client AUTHORITY.pem https://HOST:PORT/PATH".into());
    };
    let url: Uri = url.parse()?;
    let host = url.host().ok_or("the URL names no host")?.trim_matches(['[', ']']).to_owned();
    let address = tokio::net::lookup_host((host.as_str(), url.port_u16().unwrap_or(443))).await?;
    let address = address.into_iter().next().ok_or("the host has no address")?;

    let mut config = ClientConfig::with_roots_file(authority).alpn(["h3"]);
    if std::env::var_os("SSLKEYLOGFILE").is_some() {
        config = config.key_log(Arc::new(rustls::KeyLogFile::new()));
    }
    let any: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let endpoint = Endpoint::client(any)?;
    let connection = endpoint.connect(&config.build()?, address, &host)?.await?;

    let (mut driver, requests) = h3::client::new(godwit_h3::Connection::new(connection)).await?;
    let driving = async move { poll_fn(|cx| driver.poll_close(cx)).await };
    // The connection ends with the last handle that can send requests.
    let (fetched, end) = tokio::join!(fetch(requests, url), driving);
    fetched?;
    if !end.is_h3_no_error() {
        return Err(end.into());
    }
    endpoint.wait_idle().await;
    Ok(())
}

async fn fetch(mut requests: Requests, url: Uri) -> Result<(), Box<dyn Error>> {
    let mut stream = requests.send_request(Request::get(url).body(())?).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    eprintln!("{:?} {}", response.version(), response.status());
    let mut output = std::io::stdout();
    while let Some(data) = stream.recv_data().await? {
        std::io::copy(&mut data.reader(), &mut output)?;
    }
    Ok(output.flush()?)
}
