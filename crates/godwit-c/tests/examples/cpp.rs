//! The same for C++20: the programs in `examples`, and one that does with `godwit.hpp` what it can, also under sanitizers.

use crate::rig::Rig;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

#[test]
fn a_client_in_cpp_gets_from_a_server_in_cpp() {
    let Some(rig) = Rig::new() else { return };
    let (server, client) =
        (rig.build_cpp("examples/hello_server.cpp", &[]), rig.build_cpp("examples/hello_client.cpp", &[]));
    let (chain, key) = rig.certificate();
    let mut command = server.command();
    command.arg("127.0.0.1:0").arg(&chain).arg(key).stdout(Stdio::piped());
    let mut server = Ended(command.spawn().unwrap());
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening ").expect("it says where it listens");
    let port = address.rsplit(':').next().unwrap();

    let got = client.command().arg(format!("https://localhost:{port}/a/path")).arg(&chain).output().unwrap();
    let said = String::from_utf8_lossy(&got.stderr);
    assert!(got.status.success(), "{said}");
    assert!(said.starts_with("status 200 over HTTP/"), "{said}");
    assert_eq!(String::from_utf8_lossy(&got.stdout), "hello, GET /a/path\n");

    let id = server.0.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().unwrap().success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "served\n");
    assert!(server.0.wait().unwrap().success(), "it ends in good order");
}

/// A process that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn quic_in_cpp_answers_a_hundred_times_and_moves() {
    let Some(rig) = Rig::new() else { return };
    let program = rig.build_cpp("examples/hello_quic.cpp", &[]);
    let (chain, key) = rig.certificate();
    let output = program.command().arg(&chain).arg(key).arg(&chain).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("100 answers, the last one to \"from another address\", "), "{said}");
}

#[test]
fn coroutines_do_what_they_can_and_survive_what_they_should_not() {
    let Some(rig) = Rig::new() else { return };
    let program = rig.build_cpp("tests/cpp/coroutines.cpp", &["-fsanitize=address,undefined"]);
    let (chain, key) = rig.certificate();
    let output = program.command().arg(chain).arg(key).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {said}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(" checks\n"));
}

#[test]
fn what_the_readme_shows_of_cpp_is_compiled() {
    let Some(rig) = Rig::new() else { return };
    let readme = include_str!("../../README.md");
    let blocks: Vec<_> = readme.split("```cpp\n").skip(1).filter_map(|rest| rest.split_once("```")).collect();
    assert!(blocks.len() >= 3, "the README has {} blocks of C++", blocks.len());
    for (number, (block, _)) in blocks.iter().enumerate() {
        rig.compile_cpp_block(&format!("readme_cpp_{number}"), block);
    }
}
