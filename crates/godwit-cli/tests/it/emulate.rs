//! `godwit emulate`, where it can be run; elsewhere the error says what is missing, and there is nothing else to test.

use crate::alone::cannot_be_tested;
use std::io::Read;
use std::process::{Command, Output, Stdio};

fn emulate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("emulate").args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_permitted(output: &Output) -> bool {
    let said = text(&output.stderr);
    let refused = said.starts_with("godwit: emulation needs network namespaces and /dev/net/tun");
    if refused {
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    }
    !refused
}

#[test]
fn programs_meet_over_the_link_and_the_last_ones_exit_code_counts() {
    let godwit = env!("CARGO_BIN_EXE_godwit");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "over the link").unwrap();
    let server = format!(
        "XDG_DATA_HOME={0} exec {godwit} serve {0} --listen $GODWIT_SERVER:4433 --quiet",
        folder.path().display()
    );
    // The server may still be starting.
    let client = format!(
        "for try in $(seq 100); do {godwit} get https://$GODWIT_SERVER:4433/index.html --http3 --insecure && exit 7; \
         sleep 0.1; done"
    );
    let link = ["--rate", "10", "--rtt", "20", "--queue", "100", "--loss", "1/1000", "--server", &server];
    let output = emulate(&link).args(["--", "sh", "-c", &client]).output().unwrap();
    if !is_permitted(&output) {
        return cannot_be_tested(text(&output.stderr));
    }
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("over the link"), "{said}\n{errors}");
    assert_eq!(output.status.code(), Some(7), "{errors}");
    assert!(errors.lines().last().is_some_and(|line| line.starts_with("link: ")), "{errors}");
}

#[test]
fn shares_that_say_neither_are_refused() {
    for wrong in [["--loss", "1000"], ["--loss", "0.01"], ["--reorder", "5"], ["--loss", "101%"]] {
        let output = emulate(&wrong).args(["--delay", "5", "--", "true"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().next().is_some_and(|line| line.contains("such as 1/10000 or 3.5%")), "{said}");
    }
}

/// With one descriptor to spare nobody gets a TUN device, not even root.
#[test]
fn without_what_it_needs_it_says_so_in_one_line() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 4 && exec \"$0\" emulate -- true", env!("CARGO_BIN_EXE_godwit")]);
    let output = command.env_remove("RUST_LOG").stdin(Stdio::null()).output().unwrap();
    assert!(!is_permitted(&output), "{}", text(&output.stderr));
}

/// However it ends, its programs end with it; and with them, and its descriptors, the namespaces.
#[test]
fn nothing_outlives_it() {
    let mut command =
        emulate(&["--server", "echo begun; sleep 1000; true", "--", "sh", "-c", "sleep 1000; true"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut begun = [0; 6];
    let is_permitted = output.read_exact(&mut begun).is_ok();
    // Where it is not permitted it has ended.
    let _ = child.kill();
    child.wait().unwrap();
    if !is_permitted {
        return cannot_be_tested("godwit emulate");
    }
    // Both programs have the same output: it ends when they have.
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((&begun, rest.as_str()), (b"begun\n", ""));
}

#[test]
fn without_a_command_it_says_how_to_get_there() {
    let mut child = emulate(&["--rtt", "10"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        std::io::BufRead::read_line(&mut output, line).unwrap();
    }
    for (line, address) in lines.iter().zip(["10.77.0.2", "10.77.0.1"]).filter(|(line, _)| !line.is_empty()) {
        assert!(line.contains(address), "{line}");
        let network = line.split_once("--net=").unwrap().1.split(' ').next().unwrap();
        assert!(std::fs::read_link(network).unwrap().to_string_lossy().starts_with("net:"), "{line}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
