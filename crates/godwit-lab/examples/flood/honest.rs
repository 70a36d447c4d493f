//! An honest client: one connection after the other, each with a request, beside a download that goes on.

use crate::Task;
use crate::rate::Rate;
use godwit::http3::{Body, Client};
use godwit::{ClientConfig, Endpoint};
use http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// As long as people wait.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(task: Task) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(tokio::task::LocalSet::new().run_until(both(task)))
}

async fn both(task: Task) -> Result<Value, String> {
    let config = ClientConfig::danger_accept_any_certificate().resumption(false).build();
    let config = config.map_err(|error| error.to_string())?;
    let bytes = Arc::new(AtomicU64::new(0));
    let download = tokio::task::spawn_local(download(task, config.clone(), Arc::clone(&bytes)));
    let (mut took, mut failures) = (Vec::new(), Vec::new());
    let mut rate = Rate::new(Task { rate: 50, ..task });
    while rate.turn().await {
        match visit(task, &config).await {
            Ok(time) => took.push(time),
            Err(why) => failures.push(why),
        }
    }
    download.abort();
    took.sort_unstable();
    let at =
        |share: usize| took.get(took.len() * share / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
    let mbit = bytes.load(Ordering::Relaxed) as f64 * 8e-6 / task.time.as_secs_f64();
    Ok(json!({
        "handshakes": took.len(), "failed": failures.len(), "why": failures.first(),
        "p50_ms": at(50), "p99_ms": at(99), "mbit_per_second": mbit,
    }))
}

/// How long a handshake takes, from a new socket; then a small request has to succeed.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
async fn visit(task: Task, config: &ClientConfig) -> Result<Duration, String> {
    let begun = Instant::now();
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).map_err(|error| error.to_string())?;
    let all = async {
        let client = Client::connect(&endpoint, config, task.server, "localhost").await;
        let client = client.map_err(|error| format!("handshake: {error}"))?;
        let took = begun.elapsed();
        let request = Request::get("/small").body(Body::empty()).map_err(|error| error.to_string())?;
        let mut response = client.send(request).await.map_err(|error| format!("request: {error}"))?;
        while response.body_mut().data().await.map_err(|error| format!("body: {error}"))?.is_some() {}
        let status = response.status();
        if status.is_success() { Ok(took) } else { Err(format!("the server answered {status}")) }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| Err("nothing for 10 s".into()))
}

/// One big file after the other.
async fn download(task: Task, config: ClientConfig, bytes: Arc<AtomicU64>) {
    loop {
        let once = async {
            let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).map_err(|error| error.to_string())?;
            let client = Client::connect(&endpoint, &config, task.server, "localhost").await;
            let client = client.map_err(|error| error.to_string())?;
            loop {
                let request = Request::get("/big").body(Body::empty()).map_err(|error| error.to_string())?;
                let mut response = client.send(request).await.map_err(|error| error.to_string())?;
                while let Some(data) = response.body_mut().data().await.map_err(|error| error.to_string())? {
                    bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
            }
        };
        let ended: Result<(), String> = once.await;
        if let Err(why) = ended {
            eprintln!("flood: an honest download was cut: {why}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
