//! HTTP servers beside one another: Godwit, nginx, Caddy, hyper and quic-go, each by each version of HTTP that it speaks, under
//! the load of `godwit perf http`.
//!
//! Each server has core 0, one thread of work, and a process of its own for each row. What makes the requests has core 1, and
//! so has the nginx behind those that pass requests on. A program that is not there is named and left out.

mod configuration;
mod load;
mod material;
mod measure;
mod outcome;
mod programs;
mod table;
mod work;

use super::about::About;
use super::figures;
use super::options::Options;
use std::path::Path;

/// Measures with what is in a folder and what Debian has, and prints the tables.
pub(super) fn run(folder: &Path, about: &About, options: &Options) -> Result<(), String> {
    let programs = programs::there(folder, about, options);
    for line in &programs.missing {
        eprintln!("xtask: {line}");
    }
    let conditions = conditions(options);
    let results = measure::all(folder, &programs, options)?;
    print!("{}", table::report(&conditions, &programs.missing, &results));
    match &options.json {
        Some(file) => figures::write(file, about, &results, &conditions),
        None => Ok(()),
    }
}

/// How everything was measured, in a few sentences.
fn conditions(options: &Options) -> String {
    let Options { rounds, seconds, .. } = options;
    format!(
        "Server on core 0, one thread of work, `godwit perf http` on core 1 and with it the upstream, an nginx without TLS, over \
         loopback; {rounds} interleaved rounds of {seconds} s. For all: TLS 1.3, ECDSA P-256, no access log, no compression, {} \
         requests in flight, by HTTP/2 and HTTP/3 on one connection and by HTTP/1.1 on as many; connections to the upstream are kept, \
         up to {}. Exceptions: hyper answers from memory, where the others read files; nginx runs without a \
         process that only watches over its worker. Server cpu is for a request and answer; its ratio to nginx by HTTP/2 is of the \
         same round, and below 1 is less than nginx takes. By the clock: a third of the rate that the server had in the closed loop, \
         and times count from when a request was due.",
        work::IN_FLIGHT,
        work::KEPT
    )
}
