//! `godwit dashboard` as people run it: a history in, a folder of pages out.

use std::path::Path;
use std::process::{Command, Output};

fn dashboard(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_godwit");
    Command::new(program).arg("dashboard").args(arguments).current_dir(folder).output().unwrap()
}

fn history(folder: &Path) {
    std::fs::create_dir_all(folder.join("perf/history")).unwrap();
    let commit = "c".repeat(40);
    let file = format!(
        r#"{{"schema":1,"commit":"{commit}","title":"Send less","time":"2026-11-01T08:00:00Z",
            "measured":"2026-11-01T09:00:00Z","machine":{{"cpu":"Example CPU","cores":2,"kernel":"6.18"}},
            "conditions":"loopback","figures":[{{"scenario":"download","figure":"rate","unit":"Mbit/s",
            "better":"more","program":"godwit","ours":true,"runs":[9,10,11],"median":10,"least":9,"most":11}}]}}"#
    );
    std::fs::write(folder.join("perf/history/a.json"), file).unwrap();
}

#[test]
fn a_folder_of_pages_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let csv = "NetMbps,RttMs,QueueRatio,Loss,Reorder,DelayMs,Usage\n5,5,1,0,0,0,92.1\n";
    std::fs::write(folder.path().join("wan-cubic.csv"), csv).unwrap();
    let repository = "https://example.com/owner/godwit";
    let arguments = ["--out", "made/pages", "--repository", repository, "--wan", "."];
    let output = dashboard(folder.path(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("1 measurement: {}\n", Path::new("made/pages/index.html").display())
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join("made/pages").join(name)).unwrap();
    assert!(read("index.html").contains("figure-download-rate.html"));
    assert!(read("figure-download-rate.html").contains(&format!("{repository}/commit/{}", "c".repeat(40))));
    assert!(read("networks.html").contains("cubic"));
    let kept = std::fs::read_to_string(folder.path().join("perf/history/a.json")).unwrap();
    assert_eq!(read("data/a.json"), kept);
}

#[test]
fn mistakes_end_with_one_line_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    for (name, content) in [("broken", "{\n  \"schema\": 1,\n}"), ("other", "{\"schema\": 7}")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("b.json"), content).unwrap();
    }
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["broken", "--out", "o"], 1, "line 3 column 1"),
        (&["other", "--out", "o"], 1, "has schema 7, and only 1 is known"),
        (&["empty", "--out", "o"], 1, "empty holds no measurements"),
        (&["missing", "--out", "o"], 1, "missing cannot be read"),
        (&["--out", "file"], 1, "give a folder"),
        (&["--out", "o", "--wan", "empty"], 1, "empty holds no wan-*.csv"),
        (&["--out", "o", "--repository", "javascript:alert(1)"], 2, "https://example.com"),
        (&["--out", "o", "--repository", "https://x/\"onload=\""], 2, "expected an address"),
        (&[], 2, "--out"),
    ];
    for (arguments, code, text) in cases {
        let output = dashboard(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(text), "{arguments:?}: {errors}");
        assert!(code == 2 || errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
    assert!(!folder.path().join("o").exists());
}
