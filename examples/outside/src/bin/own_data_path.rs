//! Uploads over HTTP/3 by a data path of its own, which loses every hundredth datagram:
//! `own_data_path AUTHORITY.pem ADDRESS`.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use godwit::datapath::{Carrier, CarrierFactory};
use godwit::http3::{Body, Client};
use godwit::{ClientConfig, Endpoint};

/// A socket, and what went out by it.
#[derive(Debug)]
struct Lossy(UdpSocket, u64);

impl Carrier for Lossy {
    fn send(&mut self, datagram: &[u8], remote: SocketAddr) -> io::Result<()> {
        self.1 += 1;
        if self.1 % 100 == 0 { Ok(()) } else { self.0.send_to(datagram, remote).map(drop) }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buffer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        Some(&self.0)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: own_data_path AUTHORITY.pem ADDRESS");
    let config = ClientConfig::with_roots_file(arg()?).build()?;
    let paths = CarrierFactory::new(|address| {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Lossy(socket, 0))
    });
    let endpoint = Endpoint::builder().bind("127.0.0.1:0".parse()?).datapaths(paths).build()?;
    let client = Client::connect(&endpoint, &config, arg()?.parse()?, "localhost").await?;
    let upload = http::Request::post("https://localhost/hello").body(Body::from(vec![7; 1 << 20]))?;
    println!("{}", client.send(upload).await?.status());
    println!("{} packets were lost", client.connection().stats().packets_lost);
    Ok(())
}
