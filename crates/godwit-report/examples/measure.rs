//! Reads logs as a report does and tells how long it took and how right it is:
//! `measure LOG [EXACT [PAGE]]`, where `EXACT` is what `generate` wrote beside the log.

use std::collections::BTreeMap;
use std::error::Error;

use godwit_report::analysis::{Distribution, LABELS, Settings};
use godwit_report::input::{self, Source};
use godwit_report::{Metric, Report, html, terminal};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let log = arguments.next().ok_or("name a log")?;
    let started = now();
    let outcome = input::read(&[Source::File(log.into())], &[Metric::LastMile], cores(), &|_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let report = Report::new(&outcome.summary, outcome.broken.as_ref(), &Settings::default());
    let report = report.ok_or("the metric is missing")?;
    println!("{}", terminal::render(&report, false));
    println!(
        "{} lines in {seconds:.1} s ({:.0} a second), worked out in {:.1} s",
        outcome.summary.lines,
        outcome.summary.lines as f64 / seconds,
        started.elapsed().as_secs_f64() - seconds
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    if let Some(exact) = arguments.next() {
        compare(&report, &std::fs::read_to_string(exact)?)?;
    }
    if let Some(page) = arguments.next() {
        std::fs::write(page, html::page(&report))?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The largest error of all percentiles of all groups.
fn compare(report: &Report, exact: &str) -> Result<(), Box<dyn Error>> {
    let mut groups: BTreeMap<String, &Distribution> = BTreeMap::new();
    for breakdown in &report.breakdowns {
        for class in &breakdown.classes {
            groups.insert(format!("HTTP/2 {}", class.label), &class.control);
            groups.insert(format!("HTTP/3 {}", class.label), &class.http3);
        }
    }
    let mut worst = (0.0, String::new());
    for line in exact.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let samples: u64 = fields.next().unwrap_or_default().parse()?;
        let group = groups.get(name).ok_or_else(|| format!("the report has no {name}"))?;
        if group.samples != samples {
            return Err(format!("{name}: {} samples, not {samples}", group.samples).into());
        }
        for ((point, field), label) in group.points.iter().zip(fields).zip(LABELS) {
            let exact = field.parse::<f64>()? / 1e3;
            let error = (point.ms.unwrap_or(0.0) - exact).abs() / exact.max(0.001);
            if error > worst.0 {
                worst = (error, format!("{name} {label}"));
            }
        }
    }
    println!("largest error: {:.3} % at {}", worst.0 * 100.0, worst.1);
    Ok(())
}
