//! `godwit get --sessions`: one run begins with what another has left.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::get_support::{Run, Settings, TestServer, contents};

fn visit(server: &TestServer, sessions: &Path) -> Command {
    let mut command = server.get();
    command.arg("-v").arg("--sessions").arg(sessions);
    command
}

#[track_caller]
fn expect(run: &Run, why: &str) {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, contents(5000));
    assert!(run.stderr.trim_end().ends_with(why), "expected {why:?}: {}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn a_run_resumes_the_session_of_the_one_before() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let url = server.url("/bytes/5000");
    expect(&Run::of(visit(&server, &sessions).arg(&url)), "HTTP/3: as asked");
    for resumed in 1..4 {
        let run = Run::of(visit(&server, &sessions).arg(&url));
        expect(&run, "HTTP/3: as asked, with a session from before");
        assert_eq!(server.seen.sessions(), (resumed, 0));
    }
    // Without the file nothing is known.
    expect(&Run::of(server.get().args(["-v", &url])), "HTTP/3: as asked");
}

#[test]
fn requests_that_only_read_go_with_the_first_packets() {
    let server = TestServer::with(Settings { early_data: true, ..Settings::default() });
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let url = server.url("/bytes/5000");
    expect(&Run::of(visit(&server, &sessions).args(["--early-data", &url])), "HTTP/3: as asked");
    for early in 1..4 {
        let run = Run::of(visit(&server, &sessions).args(["--early-data", &url]));
        expect(&run, "HTTP/3: as asked, offering a session from before, and the request at once");
        assert_eq!(server.seen.sessions(), (early, early));
    }
    // It is not done unless asked for.
    expect(&Run::of(visit(&server, &sessions).arg(&url)), "HTTP/3: as asked, with a session from before");
    assert_eq!(server.seen.sessions(), (4, 3));
}

#[test]
fn what_was_sent_too_early_is_told_of() {
    let server = TestServer::with(Settings { early_data: true, ..Settings::default() });
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let get = |path: &str| Run::of(visit(&server, &sessions).args(["--early-data", &server.url(path)]));
    assert_eq!(get("/bytes/1").code, Some(0));
    let before = fs::read(&sessions).unwrap();

    // The server takes what came early, and wants it later.
    let run = get("/too-early");
    let told: Vec<&str> = run.stderr.lines().collect();
    assert_eq!((run.code, run.text()), (Some(0), "late enough\n"), "{}", run.stderr);
    assert!(told[0].ends_with("HTTP/3: as asked, offering a session from before, and the request at once"));
    let again = "HTTP/3 again, as the server found it too early (425), on a connection that was there";
    assert!(told[1].ends_with(again) && told.len() == 2, "{}", run.stderr);

    // The same ticket once more: the server takes nothing ahead of the handshake.
    fs::write(&sessions, before).unwrap();
    let run = get("/bytes/5000");
    let refused = "HTTP/3 again, as the server refused what came ahead of the handshake, on a connection that was there";
    assert_eq!((run.code, run.stdout.len()), (Some(0), 5000), "{}", run.stderr);
    assert!(run.stderr.trim_end().ends_with(refused), "{}", run.stderr);
}

#[test]
fn what_is_too_early_although_it_was_not_is_a_failure() {
    let server = TestServer::start();
    let run = Run::of(server.get().args(["-v", &server.url("/too-early")]));
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 2), "{}", run.stderr);
    assert!(run.stderr.contains("the server answered 425"), "{}", run.stderr);
}

#[test]
fn a_session_of_a_server_that_is_another_now_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    for _ in 0..2 {
        // The name is the same, the authority is not.
        let server = TestServer::with(Settings { early_data: true, ..Settings::default() });
        let url = server.url("/bytes/5000");
        expect(&Run::of(visit(&server, &sessions).args(["--early-data", &url])), "HTTP/3: as asked");
        assert_eq!(server.seen.sessions(), (0, 0));
    }
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diary");
    let private = |text: &str| {
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    private("dear diary");
    let run = Run::of(server.get().arg("--sessions").arg(&path).arg(server.url("/bytes/5000")));
    assert_eq!((run.code, run.stdout.len()), (Some(0), 5000), "{}", run.stderr);
    assert!(run.stderr.starts_with("godwit: warning: no sessions are kept: "), "{}", run.stderr);
    assert!(run.stderr.contains("diary: not a file of sessions") && run.stderr.lines().count() == 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "dear diary");
    // What is damaged begins anew.
    private("godwit sessions 1\nabcdefghijklmnop");
    Run::of(server.get().arg("--sessions").arg(&path).arg(server.url("/bytes/1"))).expect_success();
    let run = Run::of(server.get().arg("--sessions").arg(&path).arg(server.url("/bytes/1")));
    run.expect_success();
    assert_eq!(server.seen.sessions(), (1, 0));
}
