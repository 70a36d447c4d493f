//! `godwit perf`: the laboratory's yardstick, over the "perf" protocol of QUIC implementations.
//!
//! - [`arguments`]: the command line; [`units`] reads its durations and sizes.
//! - [`protocol`]: what goes over a stream.
//! - [`server`] and [`client`]: the two ends, both written against the public interface of crate `godwit` only.
//! - [`latency`] and [`report`]: what is measured, and how it is told.

mod arguments;
mod client;
mod latency;
mod protocol;
mod report;
mod server;
mod settings;
mod units;

use std::process::ExitCode;

use crate::error::Failure;
pub(crate) use arguments::Arguments;
use arguments::Command;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Server(arguments) => server::run(&arguments),
        Command::Client(arguments) => client::run(&arguments),
    }
}
