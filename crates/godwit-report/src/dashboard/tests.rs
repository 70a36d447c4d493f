#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::path::Path;

use serde_json::{Value, json};

use super::history::Measurement;
use super::*;

/// A file of the history with one figure of each of two programs.
fn file(commit: usize) -> Value {
    let figure = |program: &str, median: f64| {
        json!({
            "scenario": "download", "figure": "rate", "unit": "Mbit/s", "better": "more", "program": program,
            "ours": program == "godwit", "runs": [median], "median": median, "least": median - 1.0, "most": median + 1.0,
        })
    };
    json!({
        "schema": 1,
        "commit": format!("{commit:040x}"),
        "title": "Send less",
        "time": format!("2026-11-01T{:02}:{:02}:{:02}Z", commit / 3600, commit / 60 % 60, commit % 60),
        "measured": "2026-11-02T09:00:00Z",
        "machine": { "cpu": "Example CPU", "cores": 2, "kernel": "6.18" },
        "conditions": "loopback",
        "figures": [figure("godwit", 100.0 + commit as f64), figure("quinn 0.11.12", 90.0)],
    })
}

fn write(folder: &Path, name: &str, content: &Value) {
    std::fs::write(folder.join(name), content.to_string()).unwrap();
}

fn parse(content: &Value) -> Result<Measurement, String> {
    Measurement::parse(content.to_string().as_bytes())
}

fn text(pages: &[Page], name: &str) -> String {
    let page = pages.iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no {name}"));
    String::from_utf8(page.content.clone()).unwrap()
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert!(parse(&file(1)).is_ok());
    let cases: [(&str, Value, &str); 22] = [
        ("/schema", json!(2), "has schema 2, and only 1 is known"),
        ("/schema", Value::Null, "says no schema"),
        ("/commit", json!("../../x"), "commit is no commit's name"),
        ("/commit", json!("abc"), "commit is no commit's name"),
        ("/title", json!("x".repeat(4001)), "title is longer than 4000 bytes"),
        ("/time", json!("yesterday"), "time is no time in UTC"),
        ("/time", json!("2026-11-26T21:23:37+01:00"), "time is no time in UTC"),
        ("/measured", json!("2026-11-26 21:23:37Z"), "measured is no time in UTC"),
        ("/machine/cpu", json!("x".repeat(4001)), "machine.cpu is longer"),
        ("/figures/1/program", json!(""), "figures[1].program is empty"),
        ("/figures/1/program", json!("godwit"), "figures[1] is there already for this program"),
        ("/figures/1/unit", json!("bit/s"), "figures[1] has another unit"),
        ("/figures/1/better", json!("less"), "figures[1] has another unit or direction"),
        ("/figures/1/better", json!("nicer"), "unknown variant `nicer`"),
        ("/figures/0/scenario", json!("x".repeat(121)), "figures[0].scenario is longer than 120 bytes"),
        ("/figures/0/median", json!(-1.0), "figures[0].median is not between 0 and 1e15"),
        ("/figures/0/median", json!(1e300), "figures[0].median is not between 0 and 1e15"),
        ("/figures/0/median", json!(50.0), "figures[0].median is not between the least and the most"),
        ("/figures/0/runs", json!(vec![1.0; 1001]), "figures[0].runs has more than 1000 entries"),
        ("/figures/0/runs", json!([-1.0]), "figures[0].runs is not between"),
        ("/figures", json!([1]), "line 1 column"),
        ("/machine", json!("fast"), "invalid type"),
    ];
    for (place, value, problem) in cases {
        let mut content = file(1);
        *content.pointer_mut(place).unwrap() = value;
        let error = parse(&content).unwrap_err();
        assert!(error.contains(problem), "{place}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_may_be_left_out_is_checked_where_it_is_there() {
    let latency = |percentiles: Value| json!([{ "scenario": "requests", "program": "godwit", "unit": "us", "percentiles": percentiles }]);
    let cases: [(&str, Value, Option<&str>); 9] = [
        ("latencies", latency(json!([[50, 1.0], [99.9, 3.0]])), None),
        (
            "latencies",
            latency(json!([[99, 1.0], [50, 3.0]])),
            Some("latencies[0] has percentiles out of order"),
        ),
        (
            "latencies",
            latency(json!([[101, 1.0]])),
            Some("latencies[0] has a percentile that is not one of 0 to 100"),
        ),
        ("latencies", latency(json!([[50, -1.0]])), Some("latencies[0] is not between")),
        ("wan", json!([{ "profile": "default", "networks": 60, "used": 0.9 }]), None),
        ("wan", json!([{ "profile": "", "used": 0.9 }]), Some("wan[0] is empty")),
        ("wan", json!([{ "profile": "default", "used": -0.9 }]), Some("wan[0] is not between")),
        ("gate", json!({ "handshake": { "instructions": 1.0, "allocations": 2.0 } }), None),
        (
            "gate",
            json!({ "handshake": { "instructions": -1.0, "allocations": 2.0 } }),
            Some("gate is not between"),
        ),
    ];
    for (field, value, problem) in cases {
        let mut content = file(1);
        content[field] = value;
        match (parse(&content), problem) {
            (Ok(_), None) => {}
            (Err(error), Some(problem)) => assert!(error.contains(problem), "{field}: {error}"),
            (read, _) => panic!("{field}: {read:?}"),
        }
    }
}

#[test]
fn folders_that_make_no_history_are_refused_by_name() {
    let broken = |name: &str, content: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.json", &file(1));
        std::fs::write(folder.path().join(name), content).unwrap();
        History::read(folder.path()).map(|history| history.files().len()).map_err(|error| error.to_string())
    };
    assert_eq!(broken("README.md", b"# History"), Ok(1));
    let error = broken("b.json", b"{\n  \"schema\": 1,\n}").unwrap_err();
    assert!(error.contains("b.json is not right: ") && error.contains("line 3 column 1"), "{error}");
    let error = broken("b c.json", b"{}").unwrap_err();
    assert!(error.contains("b.json") || error.contains("schema"), "{error}");
    let error = broken("b c.json", file(2).to_string().as_bytes()).unwrap_err();
    assert!(error.contains("b c.json has a name with other characters"), "{error}");
    let error = broken("b.json", &vec![b' '; (4 << 20) + 1]).unwrap_err();
    assert!(error.contains("b.json cannot be read: it is larger than 4 MiB"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = History::read(empty.path()).unwrap_err().to_string();
    assert!(error.contains("holds no measurements"), "{error}");
    let error = History::read(&empty.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("none cannot be read"), "{error}");
}

#[test]
fn a_history_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut many = file(1);
    let figures = many["figures"].as_array_mut().unwrap();
    let one = figures[0].clone();
    for number in 0..401 {
        let mut figure = one.clone();
        figure["scenario"] = json!(format!("download {number}"));
        figures.push(figure);
    }
    write(folder.path(), "a.json", &many);
    let error = History::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("more than 400 different figures"), "{error}");
    let mut many = file(1);
    let figures = many["figures"].as_array_mut().unwrap();
    for number in 0..70 {
        let mut figure = one.clone();
        figure["program"] = json!(format!("peer {number}"));
        figures.push(figure);
    }
    write(folder.path(), "a.json", &many);
    let error = History::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("more than 64 programs"), "{error}");
}

#[test]
fn commits_are_in_the_order_of_their_times_and_charts_show_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    for commit in 0..200 {
        // By name the oldest would come last.
        write(folder.path(), &format!("{:03}.json", 999 - commit), &file(commit));
    }
    let history = History::read(folder.path()).unwrap();
    assert_eq!(history.files()[0].name, "999.json");
    let pages = pages(&history, &Settings::default());
    let page = text(&pages, "figure-download-rate.html");
    assert!(page.contains("Only the newest 120 of 200 commits are drawn."));
    // Two programs, two drawings.
    assert_eq!(page.matches("<path class=\"point").count(), 120 * 2 * 2 + 2);
    // The table has all of them.
    assert_eq!(page.matches("<td class=\"wrap\">Send less</td>").count(), 200);
    assert!(text(&pages, "index.html").contains("Godwit loses none of 1 figure."));
}

#[test]
fn where_a_program_was_not_measured_its_line_is_faint() {
    let folder = tempfile::tempdir().unwrap();
    for commit in 0..3 {
        let mut content = file(commit);
        if commit == 1 {
            content["figures"].as_array_mut().unwrap().truncate(1);
        }
        write(folder.path(), &format!("{commit}.json"), &content);
    }
    let pages = pages(&History::read(folder.path()).unwrap(), &Settings::default());
    let page = text(&pages, "figure-download-rate.html");
    assert_eq!(page.matches("class=\"l s1 faint dash\"").count(), 2);
    assert!(page.contains("<td>\u{2013}</td>"));
}

#[test]
fn nothing_of_a_file_is_markup() {
    const HOSTILE: &str = "\"><script>alert('x')</script>\u{202e}../..";
    let folder = tempfile::tempdir().unwrap();
    let mut content = file(1);
    for place in [
        "/title",
        "/machine/cpu",
        "/machine/kernel",
        "/conditions",
        "/figures/0/scenario",
        "/figures/0/figure",
        "/figures/0/unit",
        "/figures/0/program",
        "/figures/1/program",
    ] {
        let number = if place.ends_with("1/program") { "1" } else { "" };
        *content.pointer_mut(place).unwrap() = json!(format!("{HOSTILE}{number}"));
    }
    content["latencies"] = json!([{ "scenario": HOSTILE, "program": HOSTILE, "unit": HOSTILE, "percentiles": [[50, 1.0], [99, 2.0]] }]);
    content["wan"] = json!([{ "profile": HOSTILE, "used": 0.5, "p99_ms": 1.0 }]);
    content["gate"] = json!({ HOSTILE: { "instructions": 1.0, "allocations": 0.0 } });
    write(folder.path(), "a.json", &content);
    let mut settings = Settings::default();
    let networks = "NetMbps,RttMs,QueueRatio,Loss,Reorder,DelayMs,Usage\n1,2,3,4,5,6,7\n";
    settings.networks = vec![NetworkTable::parse("<script>a", networks).unwrap()];
    let requests = "Kind,Requests,P50,P95,P99\n<script>b,1,2,3,4\n";
    settings.networks.push(NetworkTable::parse("<script>c", requests).unwrap());
    let pages = pages(&History::read(folder.path()).unwrap(), &settings);
    for page in pages.iter().filter(|page| page.name.ends_with(".html")) {
        let content = String::from_utf8(page.content.clone()).unwrap();
        assert!(!content.contains('\u{202e}'), "{}", page.name);
        assert!(!content.contains("<script") && !content.contains("\"\">"), "{}", page.name);
        assert!(content.contains("&lt;script&gt;"), "{}", page.name);
        assert!(
            page.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)),
            "{}",
            page.name
        );
    }
}

/// Adds a figure of another program or of another name.
fn add(content: &mut Value, figure: &str, program: &str, median: f64) -> usize {
    let figures = content["figures"].as_array_mut().unwrap();
    let mut added = figures[0].clone();
    for (field, value) in
        [("figure", json!(figure)), ("program", json!(program)), ("ours", json!(program == "godwit"))]
    {
        added[field] = value;
    }
    for field in ["least", "median", "most"] {
        added[field] = json!(median);
    }
    figures.push(added);
    figures.len() - 1
}

fn made(content: &Value) -> Vec<Page> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", content);
    pages(&History::read(folder.path()).unwrap(), &Settings::default())
}

#[test]
fn what_is_of_another_kind_stands_beside_and_is_not_counted() {
    let mut content = file(1);
    let tcp = add(&mut content, "rate", "TCP", 900.0);
    content["figures"][tcp]["peer"] = json!(false);
    let crossed = add(&mut content, "rate, crossed", "godwit from quinn", 50.0);
    content["figures"][crossed]["peer"] = json!(false);
    let pages = made(&content);
    let page = text(&pages, "index.html");
    assert!(page.contains("loses none of 1 figure") && page.contains("beside: 900, TCP"), "{page}");
    let beside = page.split("<h2>Beside</h2>").nth(1).unwrap();
    assert!(beside.contains("figure-download-rate-crossed.html"), "{beside}");
    assert!(!page.contains("Not measured at this commit"));
    // Without a word about it TCP is another program like any.
    content["figures"][tcp].as_object_mut().unwrap().remove("peer");
    assert!(text(&made(&content), "index.html").contains("loses 1 of 1 figure"));
}

#[test]
fn every_program_of_ours_is_compared() {
    let mut content = file(1);
    let spinning = add(&mut content, "rate", "godwit, spinning", 80.0);
    content["figures"][spinning]["ours"] = json!(true);
    let page = text(&made(&content), "index.html");
    assert!(page.contains("loses 1 of 2 figures"));
    let at = |part: &str| page.find(part).unwrap();
    assert!(at("godwit, spinning &middot;") < at("godwit &middot;"));
}

#[test]
fn one_commit_makes_no_line() {
    let mut content = file(1);
    content["gate"] = json!({ "handshake": { "instructions": 1000, "allocations": 2 } });
    content["wan"] = json!([{ "profile": "default", "used": 0.5 }]);
    let pages = made(&content);
    for name in ["figure-download-rate.html", "counts.html", "networks.html"] {
        let page = text(&pages, name);
        assert!(!page.contains("class=\"point"), "{name}");
        assert!(name.starts_with("figure") || page.contains("<details open>"), "{name}");
    }
    let page = text(&pages, "figure-download-rate.html");
    assert!(
        page.matches("<rect").count() == 4 && page.matches("101 (100\u{2013}102)").count() == 3,
        "{page}"
    );
}

#[test]
fn failures_stand_above_all_figures() {
    let mut content = file(1);
    content["failures"] = json!([{ "scenario": "upload", "program": "<quinn>", "why": format!("it fell\nover{}", "!".repeat(9000)) }]);
    let page = text(&made(&content), "index.html");
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}: {page}"));
    assert!(at("<b>&lt;quinn&gt;</b>, upload: it fell") < at("Every figure"));
    assert!(page.matches('!').count() < 600);
}

#[test]
fn figures_that_are_percentiles_make_a_distribution() {
    let mut content = file(1);
    for (figure, median) in [("p99.9", 77.0), ("p50", 11.0), ("p99", 33.0), ("port", 1.0)] {
        add(&mut content, figure, "godwit", median);
    }
    let page = text(&made(&content), "latencies.html");
    let row = "<th scope=\"row\">godwit</th><td>11.0</td><td>33.0</td><td>77.0</td></tr>";
    assert!(page.contains(row), "{page}");
    // What the file itself says comes first.
    content["latencies"] =
        json!([{ "scenario": "download", "program": "godwit", "unit": "us", "percentiles": [[50, 12.0]] }]);
    let page = text(&made(&content), "latencies.html");
    assert!(page.contains("<td>12.0</td></tr>") && !page.contains("<td>77.0"), "{page}");
}

#[test]
fn many_words_about_conditions_are_folded_away() {
    let mut content = file(1);
    assert!(text(&made(&content), "index.html").contains("<p class=\"small\">Kernel 6.18; loopback</p>"));
    content["conditions"] = json!("loopback ".repeat(40));
    let page = text(&made(&content), "index.html");
    assert!(page.contains("<summary>Kernel 6.18; conditions</summary><p>loopback loopback"), "{page}");
}
