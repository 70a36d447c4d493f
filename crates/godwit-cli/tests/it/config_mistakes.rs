//! Mistakes in configuration files: each is found with its line, said in one sentence with a remedy, and all of them
//! at once; no port is opened for it.
//!
//! The mistakes are in `config_mistakes/*.txt`: each begins with `=== ` and a name, then comes the file, then `---` and
//! the lines expected on the standard error, as `LINE: part of the message`.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use crate::serve_support::run;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

struct Mistake<'a> {
    name: &'a str,
    /// With `{port}` for one that is in use.
    text: &'a str,
    expected: Vec<(usize, &'a str)>,
}

fn parse(text: &str) -> Vec<Mistake<'_>> {
    let parse = |part| -> Option<Mistake<'_>> {
        let (name, rest): (&str, &str) = str::split_once(part, '\n')?;
        let (text, expected) = rest.split_once("---\n")?;
        let expected = expected.lines().filter(|line| !line.is_empty()).map(|line| {
            let (number, message) = line.split_once(": ").unwrap();
            (number.parse().unwrap(), message)
        });
        Some(Mistake { name, text, expected: expected.collect() })
    };
    let parts = text.split("=== ").skip(1);
    parts.map(|part| parse(part).unwrap_or_else(|| panic!("no mistake: {part}"))).collect()
}

/// A folder with whatever configurations refer to.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let make = |name: &str, names: &[&str], expired: bool| {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        if expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 3, 1);
        }
        write(&format!("{name}.pem"), &params.self_signed(&key).unwrap().pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    };
    make("a", &["example.com", "*.example.com"], false);
    make("old", &["old.test"], true);
    std::fs::create_dir_all(folder.path().join("www/deep")).unwrap();
    std::fs::create_dir_all(folder.path().join("private")).unwrap();
    write("www/index.html", "index");
    write("note.txt", "not PEM");
    for suffix in ["pem", "key"] {
        let file = format!("a.{suffix}");
        std::fs::copy(folder.path().join(&file), folder.path().join("private").join(&file)).unwrap();
    }
    folder
}

/// The standard error and output of `--check` and its exit code.
fn check(folder: &Path, text: &str) -> (Vec<String>, String, Option<i32>) {
    let file = folder.join("godwit.toml");
    std::fs::write(&file, text).unwrap();
    let output = run(folder, &["serve", "--check", "--config", file.to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    (stderr.lines().map(str::to_owned).collect(), stdout, output.status.code())
}

fn all_are_found(cases: &str) -> usize {
    let folder = folder();
    let mistakes = parse(cases);
    for Mistake { name, text, expected } in &mistakes {
        let (found, stdout, code) = check(folder.path(), text);
        let prefix = format!("{}:", folder.path().join("godwit.toml").display());
        assert_eq!(code, Some(2), "{name}: {found:#?}");
        assert_eq!(stdout, "", "{name}");
        for line in &found {
            assert!(line.starts_with(&prefix), "{name}: {line}");
            assert!(!line.contains("os error"), "{name}: {line}");
            assert!(line.contains(['?', ';', ':']) && line.len() < 400, "{name} without a remedy: {line}");
        }
        for (number, message) in expected {
            let begin = format!("{prefix}{number}: ");
            let matches =
                |line: &&String| line.strip_prefix(&begin).is_some_and(|rest| rest.contains(message));
            assert!(found.iter().any(|line| matches(&line)), "{name}: {number}: {message} not in {found:#?}");
        }
        assert_eq!(found.len(), expected.len(), "{name}: {found:#?}");
    }
    mistakes.len()
}

#[test]
fn mistakes_of_notation_are_found() {
    assert!(all_are_found(include_str!("config_mistakes/notation.txt")) >= 30);
}

#[test]
fn mistakes_of_meaning_are_found() {
    assert!(all_are_found(include_str!("config_mistakes/meaning.txt")) >= 30);
}

#[test]
fn a_good_file_is_ok_and_no_port_is_opened() {
    let folder = folder();
    // The ports are in use, which does not matter: nobody tries to open them.
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let _udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let text = include_str!("config_mistakes/good.toml").replace("{port}", &port.to_string());
    let (stderr, stdout, code) = check(folder.path(), &text);
    assert_eq!(stderr, [""; 0]);
    let file = folder.path().join("godwit.toml");
    assert_eq!(stdout, format!("{}: ok, 3 sites, 6 routes, 1 certificate\n", file.display()));
    assert_eq!(code, Some(0));
    // But it cannot be served there.
    let output = run(folder.path(), &["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn warnings_do_not_count() {
    let folder = folder();
    let text = "[[certificate]]\ncert = \"old.pem\"\nkey = \"old.key\"\n\
        [[site]]\nhosts = [\"old.test\"]\n[[site.route]]\nrespond = { body = \"hello\" }\n";
    let (stderr, stdout, code) = check(folder.path(), text);
    assert_eq!(stderr.len(), 1, "{stderr:?}");
    assert!(
        stderr[0].contains(":2: warning: the certificate") && stderr[0].contains("expired on 2020-03-01")
    );
    assert!(stdout.contains("ok, 1 site"));
    assert_eq!(code, Some(0));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = folder();
    let missing = folder.path().join("missing.toml");
    let output = run(folder.path(), &["serve", "--config", missing.to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with(&format!("{}:1: cannot read the file: no such file", missing.display())),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(2));
    std::fs::write(&missing, b"drain = \"5s\"\nx = \"\xff\"\n").unwrap();
    let output = run(folder.path(), &["serve", "--config", missing.to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(":2: expected UTF-8"), "{stderr}");
}
