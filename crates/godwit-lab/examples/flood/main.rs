//! What strangers do to a server, and what an honest client has of it meanwhile. `cargo xtask flood` runs them side by
//! side; for servers of one's own, on loopback or in closed networks.
//!
//! `flood KIND SERVER [--seconds N] [--rate N]` floods the server and prints how often it did what it does;
//! `flood honest SERVER` opens one connection after the other beside a download and prints what it had of them.

mod forged;
mod frames;
mod honest;
mod http;
mod peer;
mod rate;

use serde_json::Value;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// What is to be done, to whom, for how long, and how often a second.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) server: SocketAddr,
    pub(crate) time: Duration,
    /// 0 is as often as it goes.
    pub(crate) rate: u32,
}

const USAGE: &str = "usage: flood KIND SERVER:PORT [--seconds N] [--rate N]\n\nKIND is one of";

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
    let mut task = Task { server, time: Duration::from_secs(20), rate: 0 };
    for option in options.chunks(2) {
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{text:?} is no number"));
        match option {
            ["--seconds", text] => task.time = Duration::from_secs(number(text)?.into()),
            ["--rate", text] => task.rate = number(text)?,
            _ => return Err(usage()),
        }
    }
    if !task.server.ip().is_loopback() && !task.server.ip().is_unspecified() {
        return Err(format!("{} is no loopback address: floods stay on this machine", task.server.ip()));
    }
    if *kind == "honest" {
        return honest::run(task);
    }
    if let Some(kind) = forged::KINDS.iter().find(|(name, _)| name == kind) {
        return (kind.1)(task).map(|count| serde_json::json!({ "count": count }));
    }
    let count = peer::run(kind, task).unwrap_or_else(|| Err(usage()))?;
    Ok(serde_json::json!({ "count": count }))
}

fn usage() -> String {
    let forged = forged::KINDS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = std::iter::once("honest").chain(forged).chain(peer::names()).collect();
    format!("{USAGE} {}", names.join(", "))
}
