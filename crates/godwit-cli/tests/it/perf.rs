//! `godwit perf` as a person runs it: both ends as programs, over loopback.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_godwit");

/// A server on a free port, which ends with this value.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    port: u16,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        Server::listening("127.0.0.1:0", options)
    }

    fn listening(listen: &str, options: &[&str]) -> Server {
        let arguments = ["perf", "server", "--listen", listen];
        let child = Command::new(PROGRAM).args(arguments).args(options).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addr = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}"));
        let (_, port) = addr.rsplit_once(':').unwrap();
        let port = port.parse().unwrap();
        Server { child, stdout, port }
    }

    fn client(&self, options: &str) -> Output {
        client(&format!("127.0.0.1:{}", self.port), options)
    }

    fn measure(&self, options: &str) -> Value {
        let output = self.client(&format!("{options} --json"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(target: &str, options: &str) -> Output {
    Command::new(PROGRAM).args(["perf", "client", target]).args(options.split_whitespace()).output().unwrap()
}

#[test]
fn an_address_in_use_names_the_option() {
    let server = Server::start(&[]);
    let address = format!("127.0.0.1:{}", server.port);
    let output = Command::new(PROGRAM).args(["perf", "server", "--listen", &address]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with(&format!("godwit: --listen {address}: ")), "{stderr}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn downloads_are_measured() {
    let server = Server::start(&[]);
    let report = server.measure("--download 300ms");
    assert_eq!(report["scenario"], "download");
    assert!(number(&report["bytes"]) > 1e5, "{report}");
    assert!(number(&report["mbit_per_second"]) > 0.0);
    assert!(number(&report["seconds"]) >= 0.3);
    assert!(number(&report["transport"]["packets_sent"]) > 0.0);
    assert!(report.get("latency_us").is_none());
}

#[test]
fn downloads_are_checked_if_that_is_wanted() {
    let server = Server::start(&["--shards", "2"]);
    for more in ["--streams 2 --connections 2", "--tcp"] {
        let report = server.measure(&format!("--download 300ms --verify {more}"));
        assert!(number(&report["bytes"]) > 1e5, "{report}");
    }
    let refused = server.client("--rps --verify");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("--verify: "), "{said}");
}

#[test]
fn an_upload_is_over_when_it_is_confirmed() {
    let server = Server::start(&[]);
    let report = server.measure("--upload 300ms --streams 3 --connections 2");
    assert_eq!(report["scenario"], "upload");
    // Whole pieces: only what was confirmed is counted, and all of it.
    let bytes = report["bytes"].as_u64().unwrap();
    assert!(bytes > 0 && bytes.is_multiple_of(64 << 10), "{report}");
}

#[test]
fn requests_are_counted_and_timed() {
    let server = Server::start(&["--shards", "2"]);
    let report = server.measure("--rps 300ms --streams 20 --connections 3 --request 100000 --response 70000");
    let requests = &report["requests"];
    assert!(number(&requests["count"]) > 0.0, "{report}");
    assert_eq!(requests["response_bytes"], 70_000);
    let latency = &report["latency_us"];
    assert!(number(&latency["p50"]) > 0.0);
    assert!(number(&latency["p50"]) <= number(&latency["p99.99"]));
    assert!(number(&latency["p99.99"]) <= number(&latency["max"]));
}

#[test]
fn latency_is_told_of_one_request_at_a_time() {
    let server = Server::start(&[]);
    let report = server.measure("--latency 200ms --response 100");
    assert_eq!((&report["scenario"], &report["concurrency"]), (&"latency".into(), &1.into()));
    assert_eq!(report["latency_us"]["samples"], report["requests"]["count"]);
    let text = String::from_utf8(server.client("--latency 100ms").stdout).unwrap();
    assert!(text.contains(" samples; fewer than 10 are above "), "{text}");
}

#[test]
fn a_histogram_holds_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times.txt");
    let server = Server::start(&[]);
    for scenario in ["--rps", "--latency", "--hps"] {
        let report = server.measure(&format!("{scenario} --duration 200ms --histogram {}", file.display()));
        let text = std::fs::read_to_string(&file).unwrap();
        let fields = |line: &str| line.split(' ').map(|field| field.parse().unwrap()).collect::<Vec<f64>>();
        let ranges: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(fields).collect();
        let count: f64 = ranges.iter().map(|range| range[1]).sum();
        assert_eq!(count, number(&report["latency_us"]["samples"]), "{text}");
        assert!(ranges.is_sorted_by(|low, high| low[0] < high[0] && low[2] < high[2]), "{text}");
        assert_eq!(ranges.last().unwrap()[2], 1.0);
    }
}

#[test]
fn sessions_are_resumed_if_that_is_asked_for_and_the_server_gives_tickets() {
    let server = Server::start(&["--tickets", "--shards", "2"]);
    let report = server.measure("--hps 300ms --concurrency 4 --resumed");
    assert!(number(&report["handshakes"]["count"]) > 0.0, "{report}");
    assert_eq!(report["resumed"], report["handshakes"]["count"], "{report}");
    let report = server.measure("--hps 100ms");
    assert!(report.get("resumed").is_none(), "{report}");
    let without = Server::start(&[]);
    let output = without.client("--hps 10s --resumed");
    assert_eq!(output.status.code(), Some(1));
    assert_one_line(&output, "--tickets");
}

#[test]
fn every_scenario_is_measured_over_tcp_as_well() {
    let server = Server::start(&["--shards", "2"]);
    for (scenario, figure) in [
        ("--download 200ms --streams 2", "/mbit_per_second"),
        ("--upload 200ms --streams 2", "/mbit_per_second"),
        ("--rps 200ms --streams 5 --connections 2 --request 100000 --response 70000", "/requests/per_second"),
        ("--rps 200ms --request 0 --response 0", "/requests/per_second"),
        ("--latency 200ms", "/latency_us/p99.99"),
        ("--hps 200ms", "/handshakes/per_second"),
        ("--idle 20 --duration 10ms", "/idle/opened"),
    ] {
        for (option, protocol) in [("", "QUIC"), ("--tcp", "TCP")] {
            let report = server.measure(&format!("{scenario} {option} --cipher chacha20"));
            assert_eq!(report["protocol"], protocol);
            assert_eq!(report["cipher"], "TLS_CHACHA20_POLY1305_SHA256", "{report}");
            assert!(number(report.pointer(figure).unwrap_or(&Value::Null)) > 0.0, "{report}");
            assert!(report["idle"].is_null() || report["idle"]["died"] == 0, "{report}");
        }
    }
}

#[test]
fn an_upload_over_tcp_is_over_when_it_is_confirmed() {
    let server = Server::start(&[]);
    let report = server.measure("--upload 200ms --tcp --connections 3");
    let bytes = report["bytes"].as_u64().unwrap();
    assert!(bytes > 0 && bytes.is_multiple_of(64 << 10), "{report}");
}

#[test]
fn the_cipher_is_chosen_by_either_end() {
    let names = [
        ("aes128", "TLS_AES_128_GCM_SHA256"),
        ("aes256", "TLS_AES_256_GCM_SHA384"),
        ("chacha20", "TLS_CHACHA20_POLY1305_SHA256"),
    ];
    let any = Server::start(&[]);
    for (cipher, name) in names {
        for scenario in ["--rps 100ms", "--hps 500ms", "--download 100ms"] {
            let report = any.measure(&format!("{scenario} --cipher {cipher}"));
            assert_eq!(report["cipher"], name);
        }
        let one = Server::start(&["--cipher", cipher]);
        assert_eq!(one.measure("--upload 50ms")["cipher"], name);
    }
    let one = Server::start(&["--cipher", "aes256"]);
    assert_one_line(&one.client("--upload 50ms --cipher aes128"), "cannot connect");
}

#[cfg(target_os = "linux")]
#[test]
fn idle_connections_are_counted_with_their_memory() {
    let server = Server::start(&[]);
    let memory = format!("--memory-of {}", server.child.id());
    let report = server.measure(&format!("--idle 200 --duration 100ms {memory}"));
    assert_eq!((&report["idle"]["opened"], &report["idle"]["died"]), (&200.into(), &0.into()), "{report}");
    assert_eq!((&report["scenario"], &report["connections"]), (&"idle".into(), &200.into()));
    // A connection takes a few KiB at the least, at either end.
    assert!(number(&report["memory"]["bytes_per_connection"]) > 2000.0, "{report}");
    assert!(number(&report["server_memory"]["bytes_per_connection"]) > 2000.0, "{report}");
    let text = String::from_utf8(server.client("--idle 2 --duration 10ms").stdout).unwrap();
    assert!(text.contains("2 connections opened, 0 died") && text.contains("bytes per connection"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_breakdown_shares_out_the_processor_time() {
    let server = Server::start(&[]);
    for (scenario, per) in [
        ("--download 300ms", "seconds_per_gb"),
        ("--upload 300ms", "seconds_per_gb"),
        ("--rps 300ms --streams 10", "us_each"),
    ] {
        let report = server.measure(&format!("{scenario} --breakdown"));
        let parts = ["crypto", "udp", "quic", "application"].map(|part| &report["breakdown"][part]);
        // The rest may be nothing on a machine that is busy.
        let timed = [parts[0], parts[1], parts[3]];
        assert!(
            timed.iter().all(|part| number(&part["seconds"]) > 0.0 && number(&part[per]) > 0.0),
            "{report}"
        );
        let shares: f64 = parts.iter().map(|part| number(&part["share"])).sum();
        assert!((0.99..=1.01).contains(&shares), "{report}");
    }
    let text = String::from_utf8(server.client("--rps 100ms --breakdown").stdout).unwrap();
    assert!(text.contains("crypto") && text.contains("application"), "{text}");
}

#[test]
fn workloads_are_presets_that_can_be_changed() {
    let server = Server::start(&[]);
    let report = server.measure("--workload 512x8k --duration 200ms --streams 3");
    assert_eq!((&report["concurrency"], &report["requests"]["response_bytes"]), (&3.into(), &8192.into()));
    let report = server.measure("--workload 4k --duration 200ms");
    assert_eq!((&report["concurrency"], &report["requests"]["response_bytes"]), (&100.into(), &4000.into()));
    let report = server.measure("--workload owa --duration 500ms --connections 20");
    assert_eq!(
        (&report["requests"]["request_bytes"], &report["requests"]["response_bytes"]),
        (&8192.into(), &17_408.into())
    );
    assert_eq!(
        (&report["requests"]["count"], &report["open_loop"]["unanswered"]),
        (&10.into(), &0.into()),
        "{report}"
    );
    let report = server.measure("--workload many --connections 30 --in-flight 50 --duration 500ms");
    assert_eq!((&report["connections"], &report["in_flight"]), (&30.into(), &50.into()));
    assert!(number(&report["requests"]["count"]) > 0.0, "{report}");
    assert!(number(&report["latency_us"]["p99"]) > 0.0 && report["memory"].is_object(), "{report}");
}

#[test]
fn requests_by_the_clock_are_as_many_as_were_planned() {
    let server = Server::start(&[]);
    for protocol in ["", "--tcp"] {
        let report = server.measure(&format!("--rps 500ms --rate 100 --streams 5 {protocol}"));
        assert_eq!(
            (&report["requests"]["count"], &report["open_loop"]["rate"]),
            (&50.into(), &100.0.into()),
            "{report}"
        );
        assert_eq!(report["open_loop"]["unanswered"], 0);
        // Of the time in which they were due.
        assert_eq!((number(&report["seconds"]), number(&report["requests"]["per_second"])), (0.5, 100.0));
    }
}

#[test]
fn a_sweep_shows_the_curve_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = folder.path().join("curve.svg");
    let server = Server::start(&[]);
    let target = format!("127.0.0.1:{}", server.port);
    let sweep = |options: &[&str]| {
        let few = ["--duration", "100ms", "--rounds", "2", "--connections", "1,2", "--streams", "4,1"];
        let command = Command::new(PROGRAM).args(["perf", "sweep", &target]).args(few).args(options).output();
        let output = command.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let report: Value =
        serde_json::from_str(&sweep(&["--json", "--svg", drawing.to_str().unwrap()])).unwrap();
    let points = report["points"].as_array().unwrap();
    let places: Vec<_> =
        points.iter().map(|point| (number(&point["connections"]), number(&point["streams"]))).collect();
    assert_eq!(places, [(1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 4.0)]);
    assert!(points.iter().any(|point| number(&point["per_second"]) > 0.0 && number(&point["p99_us"]) > 0.0));
    assert!(!report["recommendation"].as_str().unwrap().is_empty());
    assert!(std::fs::read_to_string(drawing).unwrap().starts_with("<svg xmlns="));
    let text = sweep(&["--tcp"]);
    assert!(text.contains("over TCP") && text.lines().count() == 7, "{text}");
}

#[test]
fn requests_may_be_empty() {
    let server = Server::start(&[]);
    let report = server.measure("--rps 200ms --streams 2 --request 0 --response 0");
    assert!(number(&report["requests"]["count"]) > 0.0, "{report}");
}

#[test]
fn handshakes_are_counted_and_timed() {
    let server = Server::start(&[]);
    let report = server.measure("--hps 300ms --concurrency 4");
    assert!(number(&report["handshakes"]["count"]) > 0.0, "{report}");
    assert!(number(&report["latency_us"]["p50"]) > 0.0);
    assert!(report.get("transport").is_none());
}

#[test]
fn other_settings_work_together() {
    let options = [
        "--datapath",
        "portable",
        "--cc",
        "newreno",
        "--mtu",
        "1200",
        "--spin",
        "always:50us",
        "--departure-times",
        "auto",
    ];
    let server = Server::listening("[::1]:0", &options);
    let target = format!("[::1]:{}", server.port);
    let output = client(&target, "--download 200ms --datapath portable --mtu 1200 --spin auto --json");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["transport"]["mtu"], 1200, "{report}");
    assert!(number(&report["bytes"]) > 0.0);
}

#[test]
fn people_get_a_table() {
    let server = Server::start(&[]);
    let output = server.client("--rps --duration 200ms");
    let text = String::from_utf8(output.stdout).unwrap();
    for row in ["requests", "per second", "latency (us)", "P99.9", "cpu", "transport"] {
        assert!(text.contains(row), "{text}");
    }
    assert!(!text.contains('\x1b'));
}

#[test]
fn certificates_are_verified_if_a_root_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (cert, key) = (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
    let other = file("other.pem", other.cert.pem());
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let report = server.measure(&format!("--download 100ms --cacert {cert}"));
    assert!(number(&report["bytes"]) > 0.0);
    let output = server.client(&format!("--download 100ms --cacert {other}"));
    assert_eq!(output.status.code(), Some(1));
    assert_one_line(&output, "certificate");
}

#[cfg(unix)]
#[test]
fn a_server_that_is_interrupted_tells_what_it_did() {
    let mut server = Server::start(&[]);
    server.measure("--upload 100ms");
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(server.child.wait().unwrap().success());
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("served 1 connections, 1 streams, "), "{rest}");
}

/// Interrupts a client of which an hour is asked. One that has not begun yet says so, and the next has more time.
#[cfg(target_os = "linux")]
#[test]
fn who_is_interrupted_tells_what_was_measured_so_far() {
    let server = Server::start(&[]);
    let target = format!("127.0.0.1:{}", server.port);
    let client = ["perf", "client", &target, "--rps", "1h", "--json"];
    for attempt in 1..30 {
        let mut client =
            Command::new(PROGRAM).args(client).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = client.id().to_string();
        while !catches_interrupts(&id) && client.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20) * attempt * attempt);
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = client.wait_with_output().unwrap();
        if !output.status.success() {
            assert_one_line(&output, "interrupted before anything was measured");
            continue;
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(number(&report["seconds"]) < 3600.0, "{report}");
        if number(&report["requests"]["count"]) > 0.0 {
            return;
        }
    }
    panic!("nothing was ever measured");
}

/// Whether a process has a handler of its own for SIGINT.
#[cfg(target_os = "linux")]
fn catches_interrupts(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn what_cannot_work_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pem");
    let missing = missing.to_str().unwrap();
    let server = Server::start(&[]);
    let taken = format!("127.0.0.1:{}", server.port);
    for (arguments, named) in [
        (vec!["client", "nowhere", "--hps"], "expected HOST:PORT"),
        (vec!["client", "127.0.0.1:0", "--hps"], "expected HOST:PORT"),
        (vec!["client", &taken, "--hps", "--pin", "100000"], "--pin 100000"),
        (vec!["client", &taken, "--hps", "--cacert", missing], "missing.pem"),
        (vec!["client", &taken, "--hps", "--histogram", "/nowhere/x"], "/nowhere/x"),
        (vec!["client", &taken, "--idle", "1", "--memory-of", "4294967295"], "process 4294967295"),
        (
            vec!["client", &taken, "--rps", "--connections", "100000", "--streams", "10000"],
            "at most 1000000 are possible",
        ),
        (vec!["server", "--listen", &taken], &taken),
        (vec!["server", "--cert", missing, "--key", missing], "missing.pem"),
    ] {
        let output = Command::new(PROGRAM).arg("perf").args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_one_line(&output, named);
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for options in [
        "",
        "--download 5",
        "--rps --hps",
        "--download --mtu 1000",
        "--rps --streams 0",
        "--upload --histogram x",
        "--idle 0",
        "--idle 5 --connections 3",
        "--rps --memory-of 1",
        "--rps --resumed",
        "--rps --cipher des",
        "--rps --tcp --cc bbr",
        "--hps --tcp --resumed",
        "--rps --tcp --breakdown",
        "--hps --rate 5",
        "--workload none",
        "--latency --in-flight 2",
        "--workload many --tcp",
        "--rps --in-flight 5 --streams 2",
    ] {
        let output = client("127.0.0.1:1", options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

fn assert_one_line(output: &Output, named: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("godwit: ") && text.lines().count() == 1 && text.contains(named), "{text}");
}
