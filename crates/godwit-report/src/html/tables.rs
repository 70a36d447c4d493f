//! The figures in tables, which scroll sideways in narrow windows.

use std::fmt::{self, Write};

use super::names;
use crate::analysis::{Breakdown, Class, Comparison, Difference, Distribution, LABELS, Report, Verdict};
use crate::page::{END_SECTION, escaped, section};
use crate::units::{band, change, count, latency};

pub(super) fn all(out: &mut String, report: &Report) -> fmt::Result {
    section(out, "The figures", "Latencies by percentile.")?;
    let arms = report.arms.iter().flat_map(|arms| [&arms.comparison, &arms.reused]);
    for comparison in arms.chain(&report.comparisons) {
        whole(out, comparison, names(report, comparison))?;
    }
    protocols(out, report)?;
    for breakdown in &report.breakdowns {
        classes(out, breakdown, report.control)?;
    }
    if report.hours.classes.len() > 1 {
        write!(out, "<details><summary>{}</summary>", escaped(report.hours.title))?;
        classes(out, &report.hours, report.control)?;
        out.write_str("</details>")?;
    }
    out.write_str(END_SECTION)
}

fn start(out: &mut String) -> fmt::Result {
    out.write_str("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th></th><th>requests</th>")?;
    for label in LABELS {
        write!(out, "<th>{label}</th>")?;
    }
    out.write_str("</tr></thead><tbody>")
}

fn end(out: &mut String) -> fmt::Result {
    out.write_str("</tbody></table></div>")
}

fn whole(out: &mut String, comparison: &Comparison, [control, http3]: [&str; 2]) -> fmt::Result {
    write!(
        out,
        "<h3>{}</h3><p class=\"small\">{}</p>",
        escaped(comparison.title),
        escaped(&comparison.about)
    )?;
    start(out)?;
    row(out, "a", control, &comparison.control)?;
    row(out, "b", http3, &comparison.http3)?;
    differences(out, &comparison.differences)?;
    let banded = |difference: &Option<Difference>| difference.and_then(|difference| difference.band);
    if comparison.differences.iter().any(|difference| banded(difference).is_some()) {
        out.write_str("<tr class=\"d\"><th>band</th><td></td>")?;
        for difference in &comparison.differences {
            let text = banded(difference).map(|(low, high)| band(low, high)).unwrap_or_default();
            write!(out, "<td>{text}</td>")?;
        }
        out.write_str("</tr>")?;
    }
    end(out)
}

fn protocols(out: &mut String, report: &Report) -> fmt::Result {
    out.write_str("<h3>Each protocol</h3>")?;
    start(out)?;
    for protocol in &report.protocols {
        let key = if protocol.protocol.label() == "HTTP/3" { "b" } else { "a" };
        row(out, key, protocol.protocol.label(), &protocol.distribution)?;
    }
    end(out)
}

fn classes(out: &mut String, breakdown: &Breakdown, control: &str) -> fmt::Result {
    write!(out, "<h3>{}</h3>", escaped(breakdown.title))?;
    start(out)?;
    for class in &breakdown.classes {
        let Class { label, control: one, http3: other, differences: apart } = class;
        write!(out, "<tr class=\"group\"><th>{}</th><td colspan=\"8\"></td></tr>", escaped(label))?;
        row(out, "a", control, one)?;
        row(out, "b", "HTTP/3", other)?;
        differences(out, apart)?;
    }
    end(out)
}

fn row(out: &mut String, key: &str, label: &str, distribution: &Distribution) -> fmt::Result {
    write!(
        out,
        "<tr><th><span class=\"key {key}\"></span>{}</th><td>{}</td>",
        escaped(label),
        count(distribution.samples)
    )?;
    for point in &distribution.points {
        match point.ms {
            None => out.write_str("<td>&ndash;</td>")?,
            Some(ms) if point.reliable => write!(out, "<td>{}</td>", latency(ms))?,
            Some(ms) => write!(out, "<td class=\"faint\">~{}</td>", latency(ms))?,
        }
    }
    out.write_str("</tr>")
}

fn differences(out: &mut String, differences: &[Option<Difference>; 7]) -> fmt::Result {
    out.write_str("<tr class=\"d\"><th>difference</th><td></td>")?;
    for difference in differences {
        match difference {
            None => out.write_str("<td></td>")?,
            Some(Difference { percent, verdict, .. }) => {
                let (class, mark) = match verdict {
                    Verdict::Lower => ("good", ""),
                    Verdict::Higher => ("bad", ""),
                    Verdict::TooFew => ("faint", "~"),
                    Verdict::NotResolved | Verdict::NoBand => ("", ""),
                };
                write!(out, "<td class=\"{class}\">{mark}{}</td>", change(*percent))?;
            }
        }
    }
    out.write_str("</tr>")
}
