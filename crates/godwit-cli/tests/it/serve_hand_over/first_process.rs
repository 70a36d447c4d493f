//! The first process of a container does not hand over, and says why: the container would end with it.

use super::{TOP, responding};
use crate::alone::cannot_be_tested;
use crate::serve_support::{Server, lines_of, run};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Runs what follows as number 1 among processes of its own, and ends it with itself.
const CONTAINER: [&str; 6] = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn in_container() -> Command {
    let mut command = Command::new("unshare");
    command.args(CONTAINER);
    command
}

#[tokio::test]
async fn the_first_process_of_a_container_goes_on_and_says_why() {
    let permitted = in_container().args(["sh", "-c", "test $$ = 1"]).output().unwrap();
    if !permitted.status.success() {
        return cannot_be_tested(String::from_utf8_lossy(&permitted.stderr).trim());
    }
    let data = Arc::new(tempfile::tempdir().unwrap());
    std::fs::write(data.path().join("godwit.toml"), format!("{TOP}{}", responding("first"))).unwrap();
    let mut command = in_container();
    command.arg(env!("CARGO_BIN_EXE_godwit")).args(["serve", "--quiet", "--config", "godwit.toml"]);
    command.current_dir(data.path()).env("XDG_DATA_HOME", data.path());
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut server = Server::spawn(command, Arc::clone(&data));
    let mut lines = lines_of(server.process.stderr.take().unwrap());
    let parent = server.process.id();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let signalled = Command::new("kill").args(["-s", "USR2", children.trim()]).status().unwrap();
    assert!(signalled.success());
    let refused = loop {
        let line = lines.recv().await.expect("it goes on");
        if line.contains("taken over") {
            break line;
        }
    };
    assert!(refused.contains("this one goes on: it is the first process of its container"), "{refused}");
    let url = format!("https://127.0.0.1:{}/", server.port);
    let authority = server.authority();
    let got = run(data.path(), &["get", "--cacert", authority.to_str().unwrap(), &url]);
    assert_eq!(String::from_utf8_lossy(&got.stdout), "first", "{}", String::from_utf8_lossy(&got.stderr));
}
