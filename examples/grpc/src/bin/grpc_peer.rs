//! The program of gRPC's interoperation tests on Godwit, with the command line of the peers:
//!
//! ```text
//! grpc_peer server --listen ADDR:PORT --cert PEM --key PEM
//! grpc_peer client --ca PEM --url https://HOST:PORT --protocol h2|h3 [CASE...]
//! ```
//!
//! The server answers over HTTP/3 and HTTP/2 on one port. The client prints a line for each case, `ok CASE` or
//! `FAILED CASE: WHY`.

use godwit_client::{Client, Versions};
use godwit_grpc::{Channel, DeadlineLayer};
use grpc::{cases, service};
use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use tower::Layer;

/// For one case.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, words) = split(&arguments);
    let result = match words.split_first() {
        Some((&"server", [])) => serve(&options).await.map(|()| true),
        Some((&"client", names)) => run(&options, names).await,
        _ => Err("expected `server` or `client` first".into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("grpc_peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `--NAME VALUE` as a map, and all else.
fn split(arguments: &[String]) -> (HashMap<&str, &str>, Vec<&str>) {
    let (mut options, mut words, mut left) = (HashMap::new(), Vec::new(), arguments.iter());
    while let Some(word) = left.next() {
        match word.strip_prefix("--") {
            Some(name) => drop(options.insert(name, left.next().map_or("", String::as_str))),
            None => words.push(word.as_str()),
        }
    }
    (options, words)
}

fn option<'a>(options: &HashMap<&str, &'a str>, name: &str) -> Result<&'a str, String> {
    options.get(name).copied().ok_or_else(|| format!("--{name} is missing"))
}

async fn serve(options: &HashMap<&str, &str>) -> Result<(), Box<dyn Error>> {
    let server = godwit_front::Server::builder()
        .listen(option(options, "listen")?.parse()?)
        .certificate(option(options, "cert")?, option(options, "key")?)
        .service("/", DeadlineLayer.layer(service::routes()))
        .bind()?;
    let mut running = server.start().await?;
    println!("listening {}", running.addresses()[0]);
    tokio::signal::ctrl_c().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn run(options: &HashMap<&str, &str>, names: &[&str]) -> Result<bool, Box<dyn Error>> {
    let versions = match option(options, "protocol")? {
        "h2" => Versions::Http2,
        "h3" => Versions::Http3,
        other => return Err(format!("--protocol is h2 or h3, not {other}").into()),
    };
    let client = Client::builder().versions(versions).root_file(option(options, "ca")?).build()?;
    let channel = Channel::new(client.clone()).origin(option(options, "url")?.parse()?);
    let names = if names.is_empty() { &cases::NAMES[..] } else { names };
    let mut well = true;
    for name in names {
        match tokio::time::timeout(LIMIT, cases::run(name, channel.clone())).await {
            Ok(Ok(())) => println!("ok {name}"),
            Ok(Err(why)) => {
                well = false;
                println!("FAILED {name}: {why}");
            }
            Err(_) => {
                well = false;
                println!("FAILED {name}: not over in {LIMIT:?}");
            }
        }
    }
    client.close().await;
    Ok(well)
}
