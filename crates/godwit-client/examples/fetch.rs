//! Fetches a URL over whichever version of HTTP works best, through a proxy if the environment names one:
//!
//! ```sh
//! cargo run -p godwit-client --example fetch https://example.com/
//! ```

use godwit_client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("expected a URL")?;
    let client = Client::builder().proxy_from_environment().build()?;
    let response = client.get(url).header("accept", "text/html").send().await?;
    println!("{:?} {}", response.version(), response.status());
    println!("{}", response.text().await?);
    client.close().await;
    Ok(())
}
