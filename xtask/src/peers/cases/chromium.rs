//! A real browser at `godwit serve`, whose word on which protocol brought what is `nextHopProtocol`, and at a WebTransport
//! server.

use super::{Case, READY, Stage, port_in};
use crate::peers::install::Peer;
use crate::shell;
use serde_json::{Value, json};
use std::process::Command;

/// QUIC forced from the first byte on, QUIC found by way of Alt-Svc, and WebTransport.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("chromium: forced", Peer::Chromium, |stage| {
            let seen = load(stage, "forced")?;
            expect(&seen, "/first/navigation/protocol", "h3")?;
            expect_resources(&seen, "h3")?;
            Ok("page and everything on it over h3".to_owned())
        }),
        Case::new("chromium: alt-svc", Peer::Chromium, |stage| {
            let seen = load(stage, "alt-svc")?;
            expect(&seen, "/first/navigation/protocol", "h2")?;
            let fetched =
                seen.pointer("/fetched").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if fetched.last() != Some(&Value::from("h3")) {
                return Err(format!("HTTP/3 was never used: {seen}"));
            }
            let second = seen.pointer("/second/navigation/protocol").and_then(Value::as_str);
            let (fetch, second) = (fetched.len(), second.unwrap_or("its cache"));
            Ok(format!("page over h2, h3 from fetch {fetch} on, second page over {second}"))
        }),
        Case::new("chromium: webtransport", Peer::Chromium, |stage| {
            let seen = sessions(stage)?;
            for (place, expected) in [
                ("/ready", json!(true)),
                ("/bidirectional", json!(true)),
                ("/unidirectional", json!(true)),
                ("/many", json!(true)),
                ("/datagram", json!("datagram")),
                ("/reset", json!({ "source": "stream", "code": 7 })),
                ("/opened", json!("goodbye")),
                ("/closed", json!({ "closeCode": 42, "reason": "that was all" })),
                ("/refused", json!("WebTransportError")),
                ("/end", json!({ "closeCode": 4_000_000_000_u32, "reason": "that was all" })),
            ] {
                if seen.pointer(place) != Some(&expected) {
                    return Err(format!("{place} is not {expected} in {seen}"));
                }
            }
            Ok("streams of both ends, datagrams, codes".to_owned())
        }),
    ]
}

/// What a page sees of WebTransport sessions.
fn sessions(stage: &mut Stage<'_>) -> Result<Value, String> {
    let material = &stage.bench.material;
    let mut server = Command::new(&stage.bench.webtransport);
    server.args([&material.chain, &material.key]).arg("127.0.0.1:0");
    let mut server = stage.start("server", &server)?;
    let port = server.wait_for(READY, port_in)?;
    let mut browser = Peer::Chromium.script("webtransport.mjs");
    browser.args(["--url", &format!("https://localhost:{port}/"), "--pin", &material.pin]);
    browser.arg("--certificate").arg(&material.chain).arg("--browser").arg(&stage.bench.browser);
    browser.arg("--netlog").arg(stage.logs.join("netlog.json"));
    let text = stage.run(&browser)?;
    serde_json::from_str(text.trim()).map_err(|error| format!("{error} in {text:?}"))
}

fn load(stage: &mut Stage<'_>, mode: &str) -> Result<Value, String> {
    // The example site that is in the program.
    let (_server, port) = stage.serve(&mut stage.godwit(&["serve", "--quiet"]))?;
    let screenshot = shell::root().join(format!("out/chromium-{mode}.png"));
    let _ = std::fs::remove_file(&screenshot);
    let mut browser = Peer::Chromium.command();
    browser.args([mode, "--url", &format!("https://h3.test:{port}/"), "--pin", &stage.bench.material.pin]);
    browser.arg("--browser").arg(&stage.bench.browser).arg("--screenshot").arg(&screenshot);
    browser.arg("--netlog").arg(stage.logs.join("netlog.json"));
    let text = stage.run(&browser)?;
    let seen: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{error} in {text:?}"))?;
    if seen.pointer("/first/status") != Some(&Value::from(200)) {
        return Err(format!("the page did not load: {seen}"));
    }
    if !std::fs::metadata(&screenshot).is_ok_and(|picture| picture.len() > 0) {
        return Err("there is no screenshot".to_owned());
    }
    Ok(seen)
}

fn expect(seen: &Value, place: &str, protocol: &str) -> Result<(), String> {
    if seen.pointer(place) == Some(&Value::from(protocol)) {
        return Ok(());
    }
    Err(format!("{place} is not {protocol} in {seen}"))
}

fn expect_resources(seen: &Value, protocol: &str) -> Result<(), String> {
    let resources = seen.pointer("/first/resources").and_then(Value::as_array);
    let resources =
        resources.filter(|all| !all.is_empty()).ok_or_else(|| format!("no resources in {seen}"))?;
    resources.iter().try_for_each(|resource| expect(resource, "/protocol", protocol))
}
