//! The examples, as the programs that they are.

use crate::support::{CERTIFICATE, pattern};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A program that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Cargo builds examples beside the tests.
fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path: PathBuf = path.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: cargo build -p godwit-h3 --examples", path.display());
    Command::new(path)
}

/// A server, and its port. The certificate lies in the folder.
fn server(folder: &Path, site: Option<&Path>) -> (Guard, u16) {
    std::fs::write(folder.join("certificate.pem"), &CERTIFICATE.0).unwrap();
    std::fs::write(folder.join("key.pem"), &CERTIFICATE.1).unwrap();
    let mut command = example("h3_server");
    command.args([folder.join("certificate.pem"), folder.join("key.pem")]).arg("127.0.0.1:0").args(site);
    let mut server = Guard(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim_end().strip_prefix("listening on 127.0.0.1:").unwrap().parse().unwrap())
}

fn fetch(folder: &Path, port: u16, path: &str) -> Output {
    let mut client = example("h3_client");
    let url = format!("https://localhost:{port}{path}");
    client.arg(folder.join("certificate.pem")).arg(url).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn files_are_fetched_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    std::fs::create_dir(&site).unwrap();
    let content = pattern(1, 3_000_000);
    std::fs::write(site.join("file.bin"), &content).unwrap();
    let (_server, port) = server(folder.path(), Some(&site));
    let output = fetch(folder.path(), port, "/file.bin");
    assert_eq!(told(&output), "HTTP/3.0 200 OK\n");
    assert!(output.status.success() && output.stdout == content, "{} bytes", output.stdout.len());
    for path in ["/none", "/../key.pem", "/"] {
        let output = fetch(folder.path(), port, path);
        assert_eq!((told(&output).as_str(), output.stdout.len()), ("HTTP/3.0 404 Not Found\n", 0), "{path}");
    }
}

#[test]
fn without_a_folder_all_is_well() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, port) = server(folder.path(), None);
    assert_eq!(told(&fetch(folder.path(), port, "/whatever")), "HTTP/3.0 200 OK\n");
}

#[test]
fn programs_without_arguments_say_how_they_are_called() {
    for name in ["h3_server", "h3_client"] {
        let output = example(name).output().unwrap();
        assert!(!output.status.success() && told(&output).contains("usage: "), "{name}");
    }
}
