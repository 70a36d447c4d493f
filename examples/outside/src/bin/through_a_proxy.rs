//! Fetches a URL through an HTTP proxy: `through_a_proxy PROXY AUTHORITY.pem URL`.

use godwit_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: through_a_proxy PROXY AUTHORITY.pem URL");
    let client = Client::builder().proxy(arg()?).root_file(arg()?).build()?;
    let response = client.get(arg()?).send().await?;
    println!("{:?} {}", response.version(), response.status());
    print!("{}", response.text().await?);
    client.close().await;
    Ok(())
}
