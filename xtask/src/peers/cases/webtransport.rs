//! WebTransport: a page in a real browser, and aioquic, at our example of a server.

use super::{Case, READY, Stage, port_in};
use crate::peers::install::Peer;
use crate::peers::process::Process;
use serde_json::{Value, json};
use std::process::Command;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("webtransport: chromium", Peer::Chromium, |stage| {
            let (_server, port) = serve(stage)?;
            let material = &stage.bench.material;
            let mut browser = Peer::Chromium.script("webtransport.mjs");
            browser.args(["--url", &format!("https://localhost:{port}/"), "--pin", &material.pin]);
            browser.arg("--certificate").arg(&material.chain).arg("--browser").arg(&stage.bench.browser);
            browser.arg("--netlog").arg(stage.logs.join("netlog.json"));
            let seen = stage.run(&browser)?;
            expect(
                &seen,
                &json!({
                    "ready": true,
                    "bidirectional": true,
                    "unidirectional": true,
                    "many": true,
                    "datagram": "datagram",
                    "reset": { "source": "stream", "code": 7 },
                    "opened": "goodbye",
                    "closed": { "closeCode": 42, "reason": "that was all" },
                    "refused": "WebTransportError",
                    "end": { "closeCode": 4_000_000_000_u32, "reason": "that was all" },
                }),
            )
        }),
        Case::new("webtransport: aioquic", Peer::Aioquic, |stage| {
            let (_server, port) = serve(stage)?;
            let mut client = Peer::Aioquic.script("webtransport.py");
            client.args(["--port", &port.to_string(), "--ca"]).arg(stage.authority());
            let seen = stage.run(&client)?;
            expect(
                &seen,
                &json!({
                    "status": "200",
                    "bidirectional": true,
                    "unidirectional": true,
                    "datagram": "datagram",
                    // CLOSE_WEBTRANSPORT_SESSION with code 42 and "that was all".
                    "capsule": "6843100000002a746861742077617320616c6c",
                    "refused": "404",
                }),
            )
        }),
    ]
}

fn serve(stage: &mut Stage<'_>) -> Result<(Process, u16), String> {
    let material = &stage.bench.material;
    let mut server = Command::new(&stage.bench.webtransport);
    server.args([&material.chain, &material.key]).arg("127.0.0.1:0");
    let mut server = stage.start("server", &server)?;
    let port = server.wait_for(READY, port_in)?;
    Ok((server, port))
}

/// What a client says that it saw has to have all of `expected`.
fn expect(seen: &str, expected: &Value) -> Result<String, String> {
    let seen: Value = serde_json::from_str(seen.trim()).map_err(|error| format!("{error} in {seen:?}"))?;
    for (name, value) in expected.as_object().into_iter().flatten() {
        if seen.get(name) != Some(value) {
            return Err(format!("{name} is not {value} in {seen}"));
        }
    }
    Ok("streams of both ends, datagrams, codes".to_owned())
}
