//! The programs in `examples`, compiled as the application would compile them, linked to the library, and run against one
//! another; and what the README shows, compiled.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod cpp;
mod rig;

use rig::{Program, Rig};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

/// A server that runs until it has answered `requests`, and its address.
fn serve(rig: &Rig, program: &Program, requests: u32) -> (Child, String) {
    let (chain, key) = rig.certificate();
    let mut command = program.command();
    let command = command.arg("127.0.0.1:0").arg(chain).arg(key).arg(requests.to_string());
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").expect("it says where it listens").to_owned();
    // Its pipe must not fill, nor break.
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    (server, address)
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').unwrap().1
}

#[test]
fn a_client_greets_a_server() {
    let Some(rig) = Rig::new() else { return };
    let (server, client) = (rig.build("hello_server"), rig.build("hello_client"));
    let (mut server, address) = serve(&rig, &server, 1);
    let url = format!("https://localhost:{}/some/path", port(&address));
    let output = client.command().arg(url).arg(rig.certificate().0).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("status 200 over HTTP/"), "{text}");
    assert!(text.ends_with("hello, you asked for /some/path\n"), "{text}");
    assert!(server.wait().unwrap().success(), "it ends in good order");
}

#[test]
fn a_client_says_what_is_wrong() {
    let Some(rig) = Rig::new() else { return };
    let client = rig.build("hello_client");
    let output = client.command().arg("https://127.0.0.1:1/").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("GODWIT_ERROR_CONNECT: "), "{text}");
}

#[test]
fn a_loop_of_ones_own_asks_ten_times() {
    let Some(rig) = Rig::new() else { return };
    let (server, client) = (rig.build("hello_server"), rig.build("own_loop"));
    let (mut server, address) = serve(&rig, &server, 10);
    let url = format!("https://localhost:{}/", port(&address));
    let output = client.command().arg(url).arg(rig.certificate().0).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = (0..10).map(|number| format!("request {number} has 23 bytes")).collect();
    assert_eq!(lines, expected);
    assert!(server.wait().unwrap().success(), "it ends in good order");
}

#[test]
fn quic_echoes_moves_and_counts() {
    let Some(rig) = Rig::new() else { return };
    let program = rig.build("hello_quic");
    let (chain, key) = rig.certificate();
    let output = program.command().arg(chain).arg(key).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        "with echo\n",
        "\nhello over QUIC\n",
        "\nmoved to 127.0.0.2:",
        "\nhello from elsewhere\n",
        "\na datagram came back\n",
        "2 streams opened\n",
        "\nclosed: ",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

#[test]
fn a_forked_child_has_a_server_of_its_own() {
    let Some(rig) = Rig::new() else { return };
    let (chain, key) = rig.certificate();
    let output = rig.build_c("tests/examples/forked.c").command().arg(chain).arg(key).output().unwrap();
    assert!(output.status.success(), "{} {}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_the_readme_shows_is_compiled() {
    let Some(rig) = Rig::new() else { return };
    let readme = include_str!("../../README.md");
    let blocks: Vec<_> = readme.split("```c\n").skip(1).filter_map(|rest| rest.split_once("```")).collect();
    assert!(blocks.len() >= 5, "the README has {} blocks of C", blocks.len());
    for (number, (block, _)) in blocks.iter().enumerate() {
        rig.compile_block(&format!("readme_{number}"), block);
    }
}

#[test]
fn the_header_is_c_and_cpp_without_warnings() {
    let Some(rig) = Rig::new() else { return };
    rig.compile_header("cc", &["-xc", "-std=c11"]);
    rig.compile_header("c++", &["-xc++", "-std=c++17"]);
}
