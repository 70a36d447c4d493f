//! The dashboard of a small history: two commits, the second of which was measured on two machines.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use godwit_report::dashboard::{History, NetworkTable, Page, Settings, pages};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard")
}

fn made(settings: &Settings) -> Vec<Page> {
    pages(&History::read(&folder()).unwrap(), settings)
}

fn text<'a>(pages: &'a [Page], name: &str) -> &'a str {
    let page = pages.iter().find(|page| page.name == name);
    let page = page.unwrap_or_else(|| panic!("no {name}"));
    std::str::from_utf8(&page.content).unwrap()
}

fn html(pages: &[Page]) -> impl Iterator<Item = (&str, &str)> {
    let pages = pages.iter().filter(|page| page.name.ends_with(".html"));
    pages.map(|page| (page.name.as_str(), std::str::from_utf8(&page.content).unwrap()))
}

fn full() -> Settings {
    let mut settings = Settings::default();
    settings.repository = Some("https://example.com/owner/godwit".parse().unwrap());
    let csv =
        "NetMbps,RttMs,QueueRatio,Loss,Reorder,DelayMs,Usage\n5,5,1,0,0,0,92.1\n100,50,0.2,1000,0,5,50\n";
    settings.networks = ["default", "cubic"].map(|name| NetworkTable::parse(name, csv).unwrap()).to_vec();
    settings
}

#[test]
fn pages_need_nothing_else_and_trust_nobody() {
    let pages = made(&Settings::default());
    for (name, page) in html(&pages) {
        for forbidden in
            ["http:", "https:", "<script", "url(", "@import", "src=", "javascript", "NaN", ">inf", " onload"]
        {
            assert!(!page.contains(forbidden), "{forbidden} in {name}");
        }
    }
    let hostile = "Test &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;";
    for name in ["index.html", "figure-download-rate.html"] {
        assert!(text(&pages, name).contains(hostile), "{name}");
    }
}

#[test]
fn every_element_is_closed_and_every_link_leads_somewhere() {
    let pages = made(&full());
    let elements = [
        "main", "section", "table", "tbody", "tr", "td", "th", "svg", "text", "ul", "li", "p", "div", "h1",
        "h2", "h3", "span", "details", "a", "b", "code", "footer", "nav",
    ];
    for (name, page) in html(&pages) {
        for element in elements {
            let opened =
                page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element} in {name}");
        }
        for link in page.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap();
            let known = pages.iter().any(|page| page.name == link);
            let commit = link.starts_with("https://example.com/owner/godwit/commit/");
            assert!(known || commit, "{link:?} in {name}");
        }
    }
}

#[test]
fn what_loses_stands_first_with_the_name_of_the_best() {
    let pages = made(&full());
    let page = text(&pages, "index.html");
    assert!(page.contains("Godwit loses 2 of 3 figures"), "{page}");
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part:?}"));
    // On the first machine; the other one's table comes before, as it was measured last.
    let (slower, faster) = (at("loses: 25 % more"), at("wins: 48 % more"));
    assert!(slower < faster && faster < at("nothing to compare with"));
    assert!(page.contains("200<br><span class=\"small\">quinn 0.11.12 &middot; 195\u{2013}230"));
    // The machines' runs overlap on the second only.
    let chance = "loses: 17 % less</b><br><span class=\"small\">0.83 times as good<br>runs overlap";
    assert!(at(chance) < slower);
    assert!(page.contains("loses: 25 % more</b><br><span class=\"small\">0.80 times as good</span>"));
    // What the newest commit has no figure of is not passed over.
    assert!(at("Not measured at this commit") < at("figure-upload-rate.html"));
}

#[test]
fn machines_have_lines_of_their_own() {
    let pages = made(&full());
    let page = text(&pages, "figure-download-rate.html");
    let sections: Vec<&str> = page.split("<section>").skip(1).collect();
    assert_eq!(sections.len(), 2);
    let [other, first] = [sections[0], sections[1]];
    assert!(other.contains("Example CPU B") && !other.contains("Example CPU A"));
    assert!(first.contains("Example CPU A") && !first.contains("Example CPU B"));
    // A line of two commits for each program, in each of two drawings; none where there is one commit.
    assert_eq!(first.matches("<polyline").count(), 4);
    assert_eq!(other.matches("<polyline").count(), 0);
    // Both have bars of the newest commit; the better program stands first.
    assert_eq!([first, other].map(|one| one.matches("<rect").count()), [4, 4]);
    let bar = |part: &str, name: &str| part.find(&format!("{name}<title>")).unwrap();
    assert!(bar(first, ">godwit") < bar(first, ">quinn 0.11.12"));
    assert!(bar(other, ">quinn 0.11.12") < bar(other, ">godwit"));
    assert!(
        first.contains("12,000 (11,800\u{2013}12,100)")
            && first.contains(">1.48 <span class=\"small\">quinn 0.11.12</span></td>")
    );
}

#[test]
fn points_and_rows_lead_to_commits_and_files() {
    let pages = made(&full());
    let page = text(&pages, "figure-download-rate.html");
    let commit = format!("href=\"https://example.com/owner/godwit/commit/{}\"", "a".repeat(40));
    // One point in each of two drawings, for each of two programs, and a row.
    assert_eq!(page.matches(&commit).count(), 5);
    assert!(page.contains("href=\"data/20261101T080000Z-aaaaaaaa.json\""));
    let copy = text(&pages, "data/20261101T080000Z-aaaaaaaa.json");
    let file = std::fs::read_to_string(folder().join("20261101T080000Z-aaaaaaaa.json")).unwrap();
    assert_eq!(copy, file);
}

#[test]
fn the_pages_beside_show_latencies_networks_and_counts() {
    let pages = made(&full());
    for (name, parts) in [
        ("latencies.html", &["requests, 100 streams", "P99.9", "1,800", "quinn 0.11.12"][..]),
        (
            "networks.html",
            &["Use of 2 networks", "cubic", "71.0 %", "uber-a, cold requests", "85.0 %", "1,185"][..],
        ),
        ("counts.html", &["handshake", "130,000", "0.8 % less"][..]),
    ] {
        let page = text(&pages, name);
        for part in parts {
            assert!(page.contains(part), "{part} in {name}:\n{page}");
        }
    }
    // An empty history of these says so.
    let one = tempfile::tempdir().unwrap();
    let last = "20261103T080000Z-bbbbbbbb-2.json";
    std::fs::copy(folder().join(last), one.path().join(last)).unwrap();
    let pages = godwit_report::dashboard::pages(&History::read(one.path()).unwrap(), &Settings::default());
    for name in ["latencies.html", "networks.html", "counts.html"] {
        assert!(text(&pages, name).contains("No file of the history"), "{name}");
    }
    assert!(text(&pages, "index.html").contains("first one"));
}
