//! The disk is full.

use super::{PATIENT, Watched, endpoint, site};
use crate::alone::is_alone;
use crate::serve_support::H1;
use http_body_util::BodyExt;
use std::path::Path;

/// A disk of half a MiB.
const SMALL_DISK: &str = "mount -t tmpfs -o size=512k none /mnt";
const DISK: &str = "/mnt";

/// Takes all the room that is left.
fn fill(disk: &str) -> std::path::PathBuf {
    let filler = Path::new(disk).join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write(&mut file, &[0; 512]).is_ok_and(|written| written > 0) {}
    filler
}

fn whole_lines(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count() as u64
}

#[tokio::test]
async fn a_full_disk_costs_lines_of_the_log_which_are_counted_and_nothing_else() {
    let name = "serve_faults::disk::a_full_disk_costs_lines_of_the_log_which_are_counted_and_nothing_else";
    if !is_alone(name, SMALL_DISK) {
        return;
    }
    let config = format!(
        "listen = \"127.0.0.1:0\"\naccess_log = {{ file = \"{DISK}/access.log\" }}\n{PATIENT}[[site]]\n\
         hosts = \"*\"\n[[site.route]]\nrespond = {{ body = \"here\" }}\n"
    );
    let mut watched = Watched::start("", site(1), &config);
    let log = Path::new(DISK).join("access.log");
    let mut asked = 0;
    let ask = async |watched: &Watched| {
        assert_eq!(watched.server.get(H1, "/").await.body, "here");
    };
    for _ in 0..10 {
        ask(&watched).await;
        asked += 1;
    }
    let filler = fill(DISK);
    let mut lines = Vec::new();
    while lines.is_empty() {
        ask(&watched).await;
        asked += 1;
        lines = watched.said();
    }
    for _ in 0..30 {
        ask(&watched).await;
        asked += 1;
    }
    lines.extend(watched.said());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("/mnt/access.log: no space left on device"), "{lines:?}");
    std::fs::remove_file(filler).unwrap();
    ask(&watched).await;
    asked += 1;
    let line = watched.says("is written again").await;
    let lost: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    watched.server.signal("TERM");
    assert!(watched.server.wait().success());
    assert!(lost > 0);
    assert_eq!(whole_lines(&log) + lost, asked, "each request has a line or is counted: {lost} lost");
}

#[tokio::test]
async fn a_full_disk_costs_traces_and_nothing_else() {
    if !is_alone("serve_faults::disk::a_full_disk_costs_traces_and_nothing_else", SMALL_DISK) {
        return;
    }
    let config = format!(
        "listen = \"127.0.0.1:0\"\nqlog = \"{DISK}\"\n{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\n\
         respond = {{ body = \"here\" }}\n"
    );
    let mut watched = Watched::start("", site(1), &config);
    let endpoint = endpoint();
    let visit = async |watched: &Watched| {
        let client = watched.client(&endpoint).await;
        for _ in 0..20 {
            let answer = client.send(watched.request("/")).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "here");
        }
    };
    let mut lines = Vec::new();
    while lines.is_empty() {
        visit(&watched).await;
        lines = watched.said();
    }
    for _ in 0..5 {
        visit(&watched).await;
    }
    lines.extend(watched.said());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("traces in /mnt: no space left on device"), "{lines:?}");
    for entry in std::fs::read_dir(DISK).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    // The next ones are written again, to the end.
    let mut lines = Vec::new();
    while lines.is_empty() {
        visit(&watched).await;
        lines = watched.said();
    }
    assert!(lines[0].contains("traces in /mnt are written again"), "{lines:?}");
    // The server waits for clients that have not said that they go.
    endpoint.wait_idle().await;
    watched.server.signal("TERM");
    assert!(watched.server.wait().success());
    let traces = std::fs::read_dir(DISK).unwrap().map(|entry| entry.unwrap().path());
    assert!(traces.map(|trace| whole_records(&trace)).sum::<usize>() > 50);
}

/// Records of a trace, each of which begins with a record separator (RFC 7464).
fn whole_records(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    text.split('\x1e').filter(|record| serde_json::from_str::<serde_json::Value>(record).is_ok()).count()
}
