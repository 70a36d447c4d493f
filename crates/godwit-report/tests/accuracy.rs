//! The percentiles of a made-up log are within 1 % of the exact ones, in every class.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../examples/generate.rs"]
#[expect(dead_code, reason = "the example's command line is not needed here")]
mod generate;

use godwit_report::analysis::{LABELS, Settings};
use godwit_report::{Metric, Report, Summary};

#[test]
fn percentiles_are_within_one_percent_of_the_exact_ones() {
    let mut site = generate::Site::new(5);
    let mut summary = Summary::new(&[Metric::LastMile]);
    let mut line = Vec::new();
    for number in 0..60_000 {
        line.clear();
        site.write_line(number, 60_000, &mut line);
        assert!(summary.add_line(line.trim_ascii_end()), "{}", String::from_utf8_lossy(&line));
    }
    let mut exact = Vec::new();
    site.write_exact(&mut exact).unwrap();
    let report = Report::new(&summary, None, &Settings::default()).unwrap();
    let classes = || report.breakdowns.iter().flat_map(|breakdown| &breakdown.classes);
    let mut compared = 0;
    for row in String::from_utf8(exact).unwrap().lines() {
        let mut fields = row.split('\t');
        let (protocol, label) = fields.next().unwrap().split_once(' ').unwrap();
        let class = classes().find(|class| class.label == label).unwrap_or_else(|| panic!("{label}"));
        let group = if protocol == "HTTP/3" { &class.http3 } else { &class.control };
        assert_eq!(group.samples, fields.next().unwrap().parse::<u64>().unwrap(), "{row}");
        for ((field, point), percentile) in fields.zip(group.points).zip(LABELS) {
            let exact = field.parse::<f64>().unwrap() / 1e3;
            let error = (point.ms.unwrap() - exact).abs() / exact;
            assert!(error <= 0.010_01, "{protocol} {label} {percentile}: {error}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 7 * 7);
}
