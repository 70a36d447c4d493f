//! Greets everybody: `hello_server CERTIFICATE.pem KEY.pem ADDRESS:PORT`
use godwit::{Connection, Endpoint, ServerConfig};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: hello_server CERTIFICATE.pem KEY.pem ADDRESS:PORT");
    let config = ServerConfig::from_pem_files(arg()?, arg()?).alpn(["hello"]).build()?;
    let endpoint = Endpoint::server(config, arg()?.parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move { greet(incoming.await?).await });
    }
    Ok(())
}

async fn greet(connection: Connection) -> Result<(), Box<dyn Error + Send + Sync>> {
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        let name = recv.read_to_end(1000).await?;
        send.write_all(&[b"hello, ", &name[..]].concat()).await?;
        send.finish()?;
    }
}
