//! What connections cost that do nothing: memory at both ends. A server with one connection is compared to another
//! with many, so that only what each of them takes is counted.

use super::figures::Kind;
use super::options::Options;
use super::pairs::Pair;
use super::process::{Server, errors_of, memory, on_core, reason};
use super::scenarios::Work;
use crate::patience::{self, Silence};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// What both are given to come to rest.
const REST: Duration = Duration::from_millis(1500);

/// Memory for each connection at both ends, in KiB.
pub(super) fn run(pair: &Pair, folder: &Path, options: &Options) -> Result<Vec<(Kind, f64)>, String> {
    let one = held(pair, folder, options, 1)?;
    let many = held(pair, folder, options, options.idle)?;
    let each = |one: f64, many: f64| (many - one) / (options.idle - 1) as f64;
    Ok(vec![(Kind::ServerMemory, each(one.0, many.0)), (Kind::ClientMemory, each(one.1, many.1))])
}

/// For how many seconds Godwit's client leaves its connections alone.
const QUIET: u64 = 4;
/// How often it is looked at meanwhile.
const STEP: Duration = Duration::from_millis(100);
/// How long it may take.
const LONGEST: Duration = Duration::from_secs(90);

/// The client, whose connections end with the value.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the server and the client hold with so many connections between them.
fn held(pair: &Pair, folder: &Path, options: &Options, connections: usize) -> Result<(f64, f64), String> {
    let server = Server::start(&pair.server.file, &pair.server.serve(folder, options))?;
    let mut words = pair.client.measure(&server.address, Work::Idle, options);
    words.push(connections.to_string());
    words.extend(
        pair.client.is_perf().then(|| ["--duration".to_owned(), format!("{QUIET}s")]).into_iter().flatten(),
    );
    let mut command = on_core("1", &pair.client.file, &words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = Client(command.spawn().map_err(|error| error.to_string())?);
    if pair.client.is_perf() { watched(&server, &mut client) } else { told(&server, client, connections) }
}

/// Of a client that says when its connections are open, and keeps them until it is released.
fn told(server: &Server, mut client: Client, connections: usize) -> Result<(f64, f64), String> {
    let expected = format!("open {connections}");
    let is_open = move |line: &str| Some(line.trim() == expected);
    let open =
        client.0.stdout.take().map_or(Err(Silence::Ended), |out| patience::line(out, LONGEST, is_open));
    match open {
        Ok(true) => {}
        Err(Silence::TooLong) => {
            return Err(format!("its client has not opened its connections within {} s", LONGEST.as_secs()));
        }
        Ok(false) | Err(Silence::Ended) => {
            let _ = client.0.kill();
            return Err(reason(&errors_of(&mut client.0), "its client has opened no connections"));
        }
    }
    std::thread::sleep(REST);
    Ok((memory(server.id())?, memory(client.0.id())?))
}

/// Of Godwit's, which leaves its connections alone for some time and then ends: what both held in the middle of it.
fn watched(server: &Server, client: &mut Client) -> Result<(f64, f64), String> {
    let (mut seen, most) = (Vec::new(), (LONGEST.as_millis() / STEP.as_millis()) as usize);
    let status = loop {
        if let Some(status) = client.0.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if seen.len() >= most {
            return Err(format!("its client did not end within {} s", LONGEST.as_secs()));
        }
        seen.push((memory(server.id())?, memory(client.0.id()).unwrap_or_default()));
        std::thread::sleep(STEP);
    };
    if !status.success() {
        return Err(reason(&errors_of(&mut client.0), "its client has failed"));
    }
    let middle = (QUIET as u128 * 500 / STEP.as_millis()) as usize;
    let place = seen.len().saturating_sub(middle);
    seen.get(place).copied().ok_or_else(|| "its client ended at once".to_owned())
}
