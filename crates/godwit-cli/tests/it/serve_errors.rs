//! What `godwit serve` says when it cannot start: one line on the standard error, nothing on the standard output,
//! and code 1, or 2 for a command line it cannot make sense of.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use crate::serve_support::{Server, godwit, read_all, run, site};
use rcgen::{CertificateParams, KeyPair};

/// Runs `serve` with these arguments, which must fail with one line that has all these parts.
fn fails(arguments: &[&str], parts: &[&str]) {
    let data = tempfile::tempdir().unwrap();
    fails_in(data.path(), arguments, parts);
}

fn fails_in(data: &Path, arguments: &[&str], parts: &[&str]) {
    let output = run(data, &[&["serve"], arguments].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("godwit: "), "{stderr}");
    assert!(!stderr.contains("os error"), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is missing in: {stderr}");
    }
    assert!(output.stdout.is_empty(), "nothing is printed before everything is ready");
}

/// A certificate with its key in `folder`, valid for some years or expired.
fn make_certificate(folder: &Path, name: &str, expired: bool) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if expired {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 3, 1);
    }
    let certificate = params.self_signed(&key).unwrap();
    let write = |suffix: &str, text: String| {
        let path = folder.join(format!("{name}.{suffix}"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (write("pem", certificate.pem()), write("key", key.serialize_pem()))
}

#[test]
fn a_port_in_use_is_named_with_its_transport() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    let address = format!("127.0.0.1:{port}");
    fails(&["--listen", &address], &["TCP port", &port, "127.0.0.1", "in use", "--listen"]);

    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    let address = format!("127.0.0.1:{port}");
    fails(&["--listen", &address], &["UDP port", &port, "127.0.0.1", "in use", "--listen"]);
}

#[test]
fn a_second_address_that_fails_undoes_the_first() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    fails(&["--listen", "127.0.0.1:0", "--listen", &address], &["TCP port"]);
}

#[test]
fn an_address_of_another_machine_is_refused() {
    fails(&["--listen", "192.0.2.1:4433"], &["UDP port 4433 of 192.0.2.1", "does not have the address"]);
}

#[test]
fn a_folder_must_be_one() {
    let folder = site();
    let missing = folder.path().join("missing");
    fails(&[missing.to_str().unwrap()], &["missing", "no such file", "give a folder"]);
    let file = folder.path().join("style.css");
    fails(&[file.to_str().unwrap()], &["style.css", "it is a file", "folder that it is in"]);
}

#[test]
fn certificate_files_must_be_what_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = make_certificate(folder.path(), "one", false);
    let (_, other_key) = make_certificate(folder.path(), "two", false);
    let scribble = folder.path().join("scribble");
    std::fs::write(&scribble, "scribble").unwrap();
    let scribble = scribble.to_str().unwrap();
    let missing = folder.path().join("missing.pem");
    let missing = missing.to_str().unwrap();
    let serve = |certificate: &str, key: &str, parts: &[&str]| {
        fails(&["--listen", "127.0.0.1:0", "--cert", certificate, "--key", key], parts);
    };
    serve(missing, &key, &["certificate", "missing.pem", "no such file", "--cert", "`cert`"]);
    serve(&certificate, missing, &["private key", "missing.pem", "no such file", "--key", "`key`"]);
    serve(scribble, &key, &["certificate", "BEGIN CERTIFICATE", "PEM"]);
    serve(&certificate, scribble, &["private key", "BEGIN PRIVATE KEY", "PEM"]);
    serve(&key, &certificate, &["wrong way round"]);
    serve(&certificate, &other_key, &["two.key", "does not match", "one.pem", "localhost"]);
    let encrypted = folder.path().join("encrypted.key");
    std::fs::write(
        &encrypted,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    serve(&certificate, encrypted.to_str().unwrap(), &["passphrase", "openssl pkey"]);
}

#[test]
fn an_expired_certificate_is_served_with_a_warning() {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let (certificate, key) = make_certificate(data.path(), "old", true);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--cert", &certificate, "--key", &key];
    let mut command = godwit(data.path(), &arguments);
    command.stderr(Stdio::piped());
    let mut server = Server::spawn(command, data);
    assert!(server.banner.iter().any(|line| line.contains("expired on 2020-03-01")), "{:?}", server.banner);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    let stderr = read_all(server.process.stderr.take().unwrap());
    assert!(stderr.starts_with("godwit: warning: the certificate expired on 2020-03-01"), "{stderr}");
}

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be: permissions would not stop root.
    std::fs::write(folder.path().join("godwit"), "").unwrap();
    fails_in(
        folder.path(),
        &["--listen", "127.0.0.1:0"],
        &["data folder", "godwit", "XDG_DATA_HOME", "--cert and --key"],
    );
}

#[test]
fn open_needs_a_browser() {
    let data = tempfile::tempdir().unwrap();
    let mut command = godwit(data.path(), &["serve", "--listen", "127.0.0.1:0", "--open"]);
    let output = command.env("PATH", data.path()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("chromium, chromium-browser, google-chrome"), "{stderr}");
}

#[test]
fn wrong_usage_ends_with_two() {
    let data = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["serve", "--listen", "nowhere"][..], "expected an address and a port"),
        (&["serve", "--listen", "127.0.0.1"], "port is missing"),
        (&["serve", "--cert", "a.pem"], "--key"),
        (&["serve", "--key", "a.key"], "--cert"),
        (&["serve", "--shards", "0"], "--shards"),
        (&["serve", "--spin", "5"], "off, auto, always"),
        (&["serve", "--datapath", "smoke"], "auto, linux, portable"),
        (&["serve", "a", "b"], "'b'"),
        (&["fly"], "fly"),
    ] {
        let output = run(data.path(), arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{part:?} is missing for {arguments:?}: {stderr}");
    }
}

#[test]
fn help_and_version_are_plain_without_a_terminal() {
    let data = tempfile::tempdir().unwrap();
    let help = String::from_utf8(run(data.path(), &["--help"]).stdout).unwrap();
    assert!(help.contains("For use:") && help.contains("Laboratory:"), "{help}");
    assert!(!help.contains('\x1b'), "{help:?}");
    let version = String::from_utf8(run(data.path(), &["--version"]).stdout).unwrap();
    assert_eq!(version.trim(), concat!("godwit ", env!("CARGO_PKG_VERSION")));
    assert!(run(data.path(), &["serve", "--help"]).status.success());
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_no_success() {
    let data = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["serve", "--check"][..], "the configuration is good, but that cannot be printed: no space left"),
        (&["doctor"], "cannot print the findings: no space left"),
        (&["doctor", "--json"], "cannot print the findings: no space left"),
        (&["serve", "print-dns", "a.test"], "cannot print the records: no space left"),
        (&["completions", "bash"], "no space left on device; look at where the output goes"),
        (&["get", "--help"], "cannot write to the standard output: no space left"),
        (&["--version"], "cannot write to the standard output: no space left"),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = godwit(data.path(), arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
    }
}
