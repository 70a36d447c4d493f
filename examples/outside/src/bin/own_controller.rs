//! Uploads over HTTP/3 under a congestion controller of its own: `own_controller AUTHORITY.pem ADDRESS`.
//!
//! It keeps in flight what the path has proved to deliver in two round trips, whatever is lost.

use std::sync::atomic::{AtomicU64, Ordering};

use godwit::congestion::{Acked, CongestionController};
use godwit::http3::{Body, Client};
use godwit::{ClientConfig, CongestionControl, Endpoint, Time, TransportConfig};

/// Samples of the delivery rate that the controllers were given.
static SAMPLES: AtomicU64 = AtomicU64::new(0);

/// Its window in bytes.
#[derive(Debug)]
struct TwoRoundTrips(u64);

impl CongestionController for TwoRoundTrips {
    fn wants_rate_samples(&self) -> bool {
        true
    }

    fn on_ack(&mut self, acked: &Acked<'_>) {
        if let Some(sample) = acked.delivery {
            SAMPLES.fetch_add(1, Ordering::Relaxed);
            self.0 = self.0.max(2 * sample.rate * acked.rtt.smoothed().as_micros() as u64 / 1_000_000);
        }
    }

    fn on_congestion(&mut self, _: Time) {}
    fn on_persistent_congestion(&mut self) {}
    fn on_mtu_changed(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.0
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: own_controller AUTHORITY.pem ADDRESS");
    let mut transport = TransportConfig::default();
    transport.congestion = CongestionControl::custom(|start| TwoRoundTrips(10 * u64::from(start.mtu)));
    let config = ClientConfig::with_roots_file(arg()?).transport(transport).build()?;
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let client = Client::connect(&endpoint, &config, arg()?.parse()?, "localhost").await?;
    let upload = http::Request::post("https://localhost/hello").body(Body::from(vec![7; 1 << 20]))?;
    let status = client.send(upload).await?.status();
    println!("{status} with {} samples of the delivery rate", SAMPLES.load(Ordering::Relaxed));
    Ok(())
}
