//! Tells what becomes of a connection while it does: `own_observer AUTHORITY.pem ADDRESS`.

use godwit::http3::{Body, Client};
use godwit::observe::{Observer, ObserverFactory, TransportEvent, TransportEventKind, TransportMask};
use godwit::{ClientConfig, Endpoint, Time};

struct Teller;

impl Observer for Teller {
    fn mask(&self) -> TransportMask {
        TransportEventKind::ConnectionStateUpdated.mask().union(TransportEventKind::PacketLost.mask())
    }

    fn on_event(&mut self, now: Time, event: &TransportEvent<'_>) {
        match event {
            TransportEvent::ConnectionStateUpdated { new } => println!("{now:?}: it is now {new:?}"),
            other => println!("{now:?}: {other:?}"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: own_observer AUTHORITY.pem ADDRESS");
    let config = ClientConfig::with_roots_file(arg()?).build()?;
    let observers = ObserverFactory::new(|_| Some(Box::new(Teller)));
    let endpoint = Endpoint::builder().bind("127.0.0.1:0".parse()?).observers(observers).build()?;
    let client = Client::connect(&endpoint, &config, arg()?.parse()?, "localhost").await?;
    let page = http::Request::get("https://localhost/page.txt").body(Body::empty())?;
    println!("{}", client.send(page).await?.status());
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}
