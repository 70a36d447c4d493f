//! Says its name and prints the greeting: `hello_client AUTHORITY.pem ADDRESS:PORT NAME`
use godwit::{ClientConfig, Endpoint};
use std::net::SocketAddr;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: hello_client AUTHORITY.pem ADDRESS:PORT NAME");
    let config = ClientConfig::with_roots_file(arg()?).alpn(["hello"]).build()?;
    let (server, name): (SocketAddr, String) = (arg()?.parse()?, arg()?);
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };

    let endpoint = Endpoint::client(any.parse()?)?;
    let connection = endpoint.connect(&config, server, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(name.as_bytes()).await?;
    send.finish()?;
    println!("{}", String::from_utf8(recv.read_to_end(2000).await?)?);

    connection.close(0, b"done");
    endpoint.wait_idle().await;
    Ok(())
}
