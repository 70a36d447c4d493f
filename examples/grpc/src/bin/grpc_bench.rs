//! tonic over its own HTTP/2 beside tonic over Godwit's HTTP/3: unary calls, so many at a time, on one connection.
//!
//! ```text
//! grpc_bench server --protocol h2|h3 --listen ADDR:PORT --cert PEM --key PEM
//! grpc_bench client --protocol h2|h3 --ca PEM --address ADDR:PORT [--calls 64] [--seconds 3] [--warm-up 1] [--payload 0]
//! grpc_bench pairs [--rounds 5] [--cores 0,1] and what the client takes
//! ```
//!
//! Either end has one thread. `pairs` runs all of it by turns, server and client on a core each, and prints medians.
//! The client prints calls in a second, the median and the 99th percentile of their times in microseconds, and the
//! processor time that client and server took for each call, in microseconds.

#![expect(clippy::disallowed_methods, reason = "what measures reads the clock")]

use godwit::http3;
use godwit_grpc::Channel;
use grpc::messages::{Payload, SimpleRequest};
use grpc::pb::test_service_client::TestServiceClient;
use grpc::pb::test_service_server::TestServiceServer;
use grpc::service::Tests;
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

type Options<'a> = HashMap<&'a str, &'a str>;
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.split_first() {
        Some((&"server", rest)) => serve(&named(rest)).await,
        Some((&"client", rest)) => measure(&named(rest)).await,
        Some((&"pairs", rest)) => pairs(&named(rest)),
        _ => Err("expected `server`, `client` or `pairs` first".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("grpc_bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `--NAME VALUE` as a map.
fn named<'a>(words: &[&'a str]) -> Options<'a> {
    words.chunks(2).filter_map(|pair| Some((pair.first()?.strip_prefix("--")?, *pair.get(1)?))).collect()
}

fn option<'a>(options: &Options<'a>, name: &str) -> Outcome<&'a str> {
    options.get(name).copied().ok_or_else(|| format!("--{name} is missing").into())
}

fn number(options: &Options<'_>, name: &str, default: u64) -> Outcome<u64> {
    options.get(name).map_or(Ok(default), |text| Ok(text.parse()?))
}

async fn serve(options: &Options<'_>) -> Outcome {
    let (chain, key) = (std::fs::read(option(options, "cert")?)?, std::fs::read(option(options, "key")?)?);
    let address: SocketAddr = option(options, "listen")?.parse()?;
    let service = TestServiceServer::new(Tests);
    if option(options, "protocol")? == "h2" {
        let incoming = tonic::transport::server::TcpIncoming::bind(address)?.with_nodelay(Some(true));
        println!("listening {}", incoming.local_addr()?);
        let tls = ServerTlsConfig::new().identity(Identity::from_pem(chain, key));
        let server = tonic::transport::Server::builder().tls_config(tls)?;
        return Ok(windows(options, server)?.add_service(service).serve_with_incoming(incoming).await?);
    }
    // A stream is given back to the client a round trip after its call: so many calls at a time need twice as many.
    let mut transport = godwit::TransportConfig::default();
    transport.max_bidi_streams = 256;
    let config =
        godwit::ServerConfig::from_pem(&chain, &key).alpn([http3::ALPN]).transport(transport).build()?;
    let endpoint = godwit::Endpoint::server(config, address)?;
    println!("listening {}", endpoint.local_addr()?);
    http3::Server::new().serve(&endpoint, tonic::service::Routes::new(service)).await;
    Ok(())
}

/// HTTP/2 has windows of 64 KiB unless it is told otherwise, which is enough for small messages.
fn windows(options: &Options<'_>, server: tonic::transport::Server) -> Outcome<tonic::transport::Server> {
    let payload = u32::try_from(number(options, "payload", 0)?)?;
    let window = payload.saturating_mul(128).max(65_535);
    Ok(server.initial_connection_window_size(window).initial_stream_window_size(window))
}

async fn measure(options: &Options<'_>) -> Outcome {
    let authority = std::fs::read(option(options, "ca")?)?;
    let address: SocketAddr = option(options, "address")?.parse()?;
    if option(options, "protocol")? == "h2" {
        let tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)).domain_name("localhost");
        let endpoint = tonic::transport::Endpoint::from_shared(format!("https://{address}"))?;
        return load(endpoint.tls_config(tls)?.tcp_nodelay(true).connect().await?, options).await;
    }
    let local = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let endpoint = godwit::Endpoint::client(local.parse()?)?;
    let config = godwit::ClientConfig::with_roots_pem(&authority).build()?;
    let client = http3::Client::connect(&endpoint, &config, address, "localhost").await?;
    load(Channel::new(client), options).await
}

/// Makes calls, so many at a time, and prints how that went.
async fn load(channel: impl grpc::cases::Channel, options: &Options<'_>) -> Outcome {
    let payload = usize::try_from(number(options, "payload", 0)?)?;
    let begin = Instant::now() + Duration::from_secs(number(options, "warm-up", 1)?);
    let end = begin + Duration::from_secs(number(options, "seconds", 3)?);
    let mut tasks = JoinSet::new();
    for _ in 0..number(options, "calls", 64)? {
        let mut calls = TestServiceClient::new(channel.clone());
        let request = SimpleRequest {
            response_size: i32::try_from(payload)?,
            payload: (payload > 0).then(|| Payload::zeros(payload)),
            ..SimpleRequest::default()
        };
        tasks.spawn(async move {
            let mut times = Vec::new();
            loop {
                let begun = Instant::now();
                if begun >= end {
                    return Ok(times);
                }
                calls.unary_call(request.clone()).await?;
                if begun >= begin {
                    times.push(begun.elapsed().as_nanos() as u64);
                }
            }
        });
    }
    let server = options.get("server").copied();
    tokio::time::sleep_until(begin.into()).await;
    let before = (processor_time("self")?, server.map(processor_time).transpose()?);
    let mut times: Vec<u64> = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.append(&mut ended?.map_err(|status: tonic::Status| status)?);
    }
    let after = (processor_time("self")?, server.map(processor_time).transpose()?);
    times.sort_unstable();
    let count = times.len();
    let at = |share: f64| times.get((count as f64 * share) as usize).copied().unwrap_or(0) as f64 / 1e3;
    let each = |spent: f64| spent * 1e6 / count as f64;
    println!(
        "{:.0} {:.0} {:.0} {:.2} {:.2}",
        count as f64 / (end - begin).as_secs_f64(),
        at(0.5),
        at(0.99),
        each(after.0 - before.0),
        each(after.1.unwrap_or(0.0) - before.1.unwrap_or(0.0)),
    );
    Ok(())
}

/// Seconds that a process has computed, for itself and in the kernel.
fn processor_time(process: &str) -> Outcome<f64> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}

/// A program that is ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pairs(options: &Options<'_>) -> Outcome {
    let (server_core, client_core) =
        options.get("cores").copied().unwrap_or("0,1").split_once(',').ok_or("--cores is two numbers")?;
    let me = std::env::current_exe()?;
    let on = |core: &str, words: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["-c", core]).arg(&me).args(words).stdout(Stdio::piped());
        command
    };
    let mut results: [Vec<[f64; 5]>; 2] = Default::default();
    for round in 0..number(options, "rounds", 5)? {
        let mut order = [(0, "h2"), (1, "h3")];
        if round % 2 == 1 {
            order.reverse();
        }
        for (which, protocol) in order {
            let (cert, key) = (option(options, "cert")?, option(options, "key")?);
            let words =
                ["server", "--protocol", protocol, "--listen", "127.0.0.1:0", "--cert", cert, "--key", key];
            let mut server = Running(on(server_core, &words).spawn()?);
            let mut line = String::new();
            BufReader::new(server.0.stdout.take().ok_or("no output")?).read_line(&mut line)?;
            let address =
                line.trim().strip_prefix("listening ").ok_or("the server does not listen")?.to_owned();
            let id = server.0.id().to_string();
            let mut client =
                on(client_core, &["client", "--protocol", protocol, "--address", &address, "--server", &id]);
            for (name, value) in
                options.iter().filter(|(name, _)| !["rounds", "cores", "cert", "key"].contains(name))
            {
                client.arg(format!("--{name}")).arg(value);
            }
            let output = client.output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            eprintln!("{protocol}: {}", text.trim());
            let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            results[which].push(figures.try_into().map_err(|_| "the client has failed")?);
        }
    }
    report(&results);
    Ok(())
}

/// Medians with the lowest and the highest, and the median of the pairs' ratios.
fn report(results: &[Vec<[f64; 5]>; 2]) {
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    };
    for (at, name) in
        ["calls/s", "P50 us", "P99 us", "client us/call", "server us/call"].into_iter().enumerate()
    {
        let [h2, h3] = results.each_ref().map(|all| sorted(all.iter().map(|one| one[at]).collect()));
        let ratios = results[0].iter().zip(&results[1]).map(|(h2, h3)| h3[at] / h2[at]).collect();
        let ratio = sorted(ratios);
        println!(
            "{name:<15} HTTP/2 {:>8.1} ({:.1} to {:.1})  HTTP/3 {:>8.1} ({:.1} to {:.1})  ratio {:.2} ({:.2} to {:.2})",
            h2.0, h2.1, h2.2, h3.0, h3.1, h3.2, ratio.0, ratio.1, ratio.2
        );
    }
}
