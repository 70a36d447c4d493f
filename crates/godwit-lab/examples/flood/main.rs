//! What strangers do to a server, and what an honest client has of it meanwhile. `cargo xtask flood` runs them side by
//! side; for servers of one's own, on loopback or in closed networks.
//!
//! `flood KIND SERVER [--seconds N] [--rate N] [--count N]` floods the server and prints how often it did what it does,
//! in how many datagrams, and how many connections were closed for it; `flood honest SERVER` opens one connection after
//! the other beside a download and prints what it had of them.

mod forged;
mod frames;
mod h2;
mod heard;
mod honest;
mod http;
mod peer;
mod rate;

use serde_json::Value;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is to be done, to whom, for how long, and how often a second.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) server: SocketAddr,
    pub(crate) time: Duration,
    /// 0 is as often as it goes.
    pub(crate) rate: u32,
    /// How often at most.
    pub(crate) count: Option<u64>,
}

/// Datagrams that were sent.
static DATAGRAMS: AtomicU64 = AtomicU64::new(0);

/// Connections that the server closed: how many, and why it closed the last.
static CLOSED: Mutex<(u64, String)> = Mutex::new((0, String::new()));

/// The server closed a connection.
pub(crate) fn closed(why: &dyn std::fmt::Display) {
    let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    *closed = (closed.0 + 1, why.to_string());
}

/// So many more datagrams were sent.
pub(crate) fn sent(datagrams: u64) {
    DATAGRAMS.fetch_add(datagrams, Ordering::Relaxed);
}

const USAGE: &str = "usage: flood KIND SERVER:PORT [--seconds N] [--rate N] [--count N]\n\nKIND is one of";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("flood: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Value, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [kind, server, options @ ..] = words.as_slice() else { return Err(usage()) };
    let server = server.parse().map_err(|_| format!("{server:?} is no ADDRESS:PORT"))?;
    let mut task = Task { server, time: Duration::from_secs(20), rate: 0, count: None };
    for option in options.chunks(2) {
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{text:?} is no number"));
        match option {
            ["--seconds", text] => task.time = Duration::from_secs(number(text)?.into()),
            ["--rate", text] => task.rate = number(text)?,
            ["--count", text] => task.count = Some(number(text)?.into()),
            _ => return Err(usage()),
        }
    }
    if !task.server.ip().is_loopback() && !task.server.ip().is_unspecified() {
        return Err(format!("{} is no loopback address: floods stay on this machine", task.server.ip()));
    }
    if *kind == "honest" {
        return honest::run(task);
    }
    let count = match forged::KINDS.iter().find(|(name, _)| name == kind) {
        Some((_, flood)) => flood(task)?,
        None => {
            let of_peers = h2::run(kind, task).or_else(|| peer::run(kind, task));
            of_peers.unwrap_or_else(|| Err(usage()))?
        }
    };
    let (closed, why) = CLOSED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let datagrams = DATAGRAMS.load(Ordering::Relaxed);
    Ok(serde_json::json!({ "count": count, "datagrams": datagrams, "closed": closed, "why_closed": why }))
}

fn usage() -> String {
    let forged = forged::KINDS.iter().map(|(name, _)| *name);
    let names: Vec<&str> =
        std::iter::once("honest").chain(forged).chain(h2::names()).chain(peer::names()).collect();
    format!("{USAGE} {}", names.join(", "))
}
