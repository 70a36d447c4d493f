//! A real browser at `godwit serve`. Its word on which protocol brought what is `nextHopProtocol`.

use super::{Case, Stage};
use crate::peers::install::Peer;
use crate::shell;
use serde_json::Value;

/// QUIC forced from the first byte on, and QUIC found by way of Alt-Svc.
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
    ]
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
