//! The cases of gRPC's interoperation tests: grpc-go and tonic on Godwit as clients and as servers, directly and through
//! `godwit serve`.

use super::{Case, READY, Stage, port_in};
use crate::peers::install::Peer;
use std::fs;
use std::process::Command;

/// What grpc-go's client and ours both have.
const NAMES: [&str; 14] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "cancel_after_begin",
    "cancel_after_first_response",
    "timeout_on_sleeping_server",
    "custom_metadata",
    "status_code_and_message",
    "special_status_message",
    "unimplemented_method",
    "unimplemented_service",
];

/// Every client by every protocol it speaks, at either server and in front of it.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for server in [Peer::GrpcGo, Peer::Tonic] {
        for (client, protocol) in [(Peer::GrpcGo, "h2"), (Peer::Tonic, "h2"), (Peer::Tonic, "h3")] {
            for proxied in [false, true] {
                // Neither is ours, or there is no such server.
                if !proxied && server == Peer::GrpcGo && (client == Peer::GrpcGo || protocol == "h3") {
                    continue;
                }
                let way = if proxied { "through godwit to" } else { "to" };
                let name = format!("grpc: {} {protocol} {way} {}", client.name(), server.name());
                let run = move |stage: &mut Stage<'_>| ask(stage, server, client, protocol, proxied);
                let mut case = Case::new(name, client, run);
                case.needs.push(server);
                cases.push(case);
            }
        }
    }
    cases
}

fn ask(
    stage: &mut Stage<'_>,
    server: Peer,
    client: Peer,
    protocol: &str,
    proxied: bool,
) -> Result<String, String> {
    let (_server, mut port) = stage.serve(of(stage, server).arg("server"))?;
    let mut proxy = None;
    if proxied {
        let mut started = stage.start("proxy", &serve(stage, port)?)?;
        port = started.wait_for(READY, port_in)?;
        proxy = Some(started);
    }
    let mut command = of(stage, client);
    command.arg("client").arg("--ca").arg(&stage.bench.material.authority);
    command.args(["--url", &format!("https://localhost:{port}")]);
    if client == Peer::GrpcGo {
        // The first that fails ends it: each has a process of its own.
        for name in NAMES {
            let mut command = copy(&command);
            stage.run(command.arg(name)).map_err(|why| format!("{name}: {why}"))?;
        }
    } else {
        command.args(["--protocol", protocol]).args(NAMES);
        let ended = stage.attempt(&command)?;
        if !ended.status.success() {
            let failed: Vec<_> = ended.output.lines().filter(|line| line.starts_with("FAILED ")).collect();
            return Err(if failed.is_empty() { ended.story } else { failed.join("\n") });
        }
    }
    drop(proxy);
    Ok(format!("{} cases", NAMES.len()))
}

/// A program that keeps its own files within the case.
fn of(stage: &Stage<'_>, peer: Peer) -> Command {
    let mut command = peer.command();
    command.env("XDG_DATA_HOME", &stage.logs);
    command
}

/// The same program with the same arguments.
fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy
}

/// Our program in front of a server with a certificate of the tests' authority.
fn serve(stage: &Stage<'_>, port: u16) -> Result<Command, String> {
    let material = &stage.bench.material;
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\n[[certificate]]\ncert = {:?}\nkey = {:?}\n[[site]]\nhosts = [\"localhost\"]\n\
         [[site.route]]\npath = \"/*\"\nproxy = \"https://localhost:{port}\"\nupstream.ca = {:?}\n",
        material.chain, material.key, material.authority
    );
    let file = stage.logs.join("proxy.toml");
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = stage.godwit(&["serve", "--quiet", "--config"]);
    command.arg(file);
    Ok(command)
}
