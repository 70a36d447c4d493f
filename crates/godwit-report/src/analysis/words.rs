//! The result in a sentence, and the remarks without which it must not be read.

use super::compare::{Comparison, Difference, Verdict};
use super::distribution::LABELS;
use super::{Arms, Gravity, Note, Report};
use crate::dimension::{Metric, Protocol};
use crate::summary::Summary;
use crate::units::{band, change, count, counted, latency, share};

/// Places of P99, P95 and P50: the headline is about the first that both groups can carry.
const TOLD: [usize; 3] = [4, 3, 0];

pub(super) fn headline(control: &str, comparisons: &[Comparison], arms: Option<&Arms>) -> (String, Verdict) {
    if let Some(arms) = arms.filter(|arms| !arms.ratio.wrong) {
        return sentence("Where HTTP/3 was offered", "where it was not", &arms.comparison);
    }
    match comparisons.first() {
        Some(comparison) => sentence("With HTTP/3", &format!("with {control}"), comparison),
        None => (
            format!("There is nothing to compare: the logs hold no requests of both HTTP/3 and {control}."),
            Verdict::TooFew,
        ),
    }
}

fn sentence(treated: &str, untreated: &str, comparison: &Comparison) -> (String, Verdict) {
    let told = TOLD.into_iter().find_map(|place| {
        let difference = comparison.differences.get(place).copied().flatten()?;
        let from = comparison.control.points.get(place)?.ms?;
        let to = comparison.http3.points.get(place)?.ms?;
        (difference.verdict != Verdict::TooFew).then_some((place, difference, from, to))
    });
    let how = if comparison.title == "Like for like" { ", like for like" } else { "" };
    let Some((place, difference, from, to)) = told else {
        let fewest = comparison.control.samples.min(comparison.http3.samples);
        let requests = counted(fewest, "request", "requests");
        return (
            format!("Too little to compare yet: the smaller group has {requests}, and a median wants 60."),
            Verdict::TooFew,
        );
    };
    let slow = match place {
        4 => "the slowest 1 % of requests took",
        3 => "the slowest 5 % of requests took",
        _ => "half of the requests took",
    };
    let Difference { percent, band: limits, verdict } = difference;
    let amount = match (verdict, limits) {
        (Verdict::Lower, Some((low, high))) => {
            format!("{} less (between {} and {})", amount(-percent), amount(-high), amount(-low))
        }
        (Verdict::Higher, Some((low, high))) => {
            format!("{} more (between {} and {})", amount(percent), amount(low), amount(high))
        }
        (_, Some((low, high))) => {
            format!(
                "a difference of {} that is not resolved (anything from {} is possible)",
                change(percent),
                band(low, high)
            )
        }
        _ => format!("a difference of {} that may be chance: too few users to tell", change(percent)),
    };
    let sentence = format!(
        "{treated}, {slow} {} or longer; {untreated}, {}: {amount}{how}.",
        latency(to),
        latency(from)
    );
    (sentence, verdict)
}

fn amount(percent: f64) -> String {
    change(percent).trim_start_matches(['+', '-']).to_owned()
}

fn warning(text: String) -> Note {
    Note { gravity: Gravity::Warning, text }
}

fn remark(text: impl Into<String>) -> Note {
    Note { gravity: Gravity::Remark, text: text.into() }
}

pub(super) fn notes(report: &Report, summary: &Summary) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(report.arms.as_ref().map(about_arms));
    notes.extend(about_ratio(report));
    about_balance(report, &mut notes);
    notes.extend(about_delivery(report, summary));
    notes.extend(about_failures(report));
    notes.extend(about_bands(report));
    notes.extend(about_broken(report));
    if report.arms.is_none() && !report.comparisons.is_empty() {
        notes.push(remark(
            "Only a roll-out to a part of the users, drawn by lot, tells what HTTP/3 itself does: advertise = \"50%\" \
             in the site's configuration.",
        ));
    }
    notes
}

fn about_arms(arms: &Arms) -> Note {
    remark(format!(
        "HTTP/3 was offered to users drawn by lot; {} of their requests came by it, and {} of the other users'. \
         The sides are compared whole, so that the difference is smaller than that of the protocols themselves.",
        share(arms.really_http3),
        share(arms.stray_http3)
    ))
}

fn about_ratio(report: &Report) -> Option<Note> {
    let ratio = report.arms.as_ref()?.ratio;
    let found = format!(
        "{} of the requests are of users with the offer (give or take {})",
        share(ratio.share),
        share(ratio.margin)
    );
    Some(match ratio.expected {
        Some(expected) if ratio.wrong => warning(format!(
            "The roll-out's sides are not as they should be: {found}, where {} was wanted. Something loses requests of \
             one side; do not trust the comparison until that is found.",
            share(expected)
        )),
        Some(expected) => remark(format!(
            "The roll-out's sides are as they should be: {found}, wanted {}.",
            share(expected)
        )),
        None => remark(format!("{found}; whether that is right is checked with --share PERCENT.")),
    })
}

fn about_balance(report: &Report, notes: &mut Vec<Note>) {
    let unequal: Vec<_> = report.balance.iter().filter(|balance| balance.unequal).collect();
    // The sides of a roll-out do not suffer from it.
    let drawn = report.arms.as_ref().is_some_and(|arms| !arms.ratio.wrong);
    for balance in &unequal {
        let text = format!(
            "The groups differ in {}: {} of {}'s requests were {}, {} of HTTP/3's. Read \"Like for like\" rather than \
             the figures as they came.",
            balance.what,
            share(balance.control),
            report.control,
            balance.class,
            share(balance.http3)
        );
        notes.push(if drawn { remark(text) } else { warning(text) });
    }
    if report.balance.is_empty() {
        return;
    }
    if unequal.is_empty() {
        notes.push(remark(
            "Place on the connection, size, IP version and hour are much alike in both groups.",
        ));
    }
    notes.push(remark(format!(
        "{} holds all first visits, because browsers learn of HTTP/3 from the first response, and all users whose \
         networks block UDP. No weighting can undo that.",
        report.control
    )));
}

fn about_delivery(report: &Report, summary: &Summary) -> Option<Note> {
    if !matches!(report.metric, Metric::LastMile | Metric::Delivered) {
        return None;
    }
    let [http1, http2, http3] = &summary.protocols;
    let known = |delivered: u64, kept: u64| delivered as f64 / kept.max(1) as f64;
    let tcp = known(http1.delivered + http2.delivered, http1.kept + http2.kept);
    let quic = known(http3.delivered, http3.kept);
    let unknown =
        "the others are left out, and a side that loses more of them may lose the faster or the slower ones";
    if http3.kept == 0 || http1.kept + http2.kept == 0 || (tcp > 0.99 && quic > 0.99) {
        return None;
    }
    let text = format!(
        "When the client had the response is known for {} of {}'s requests and {} of HTTP/3's; {unknown}.",
        share(tcp),
        report.control,
        share(quic)
    );
    Some(if (tcp - quic).abs() > 0.05 { warning(text) } else { remark(text) })
}

fn about_failures(report: &Report) -> Option<Note> {
    let failed = |http3: bool| {
        let rows = report.protocols.iter().filter(|row| (row.protocol == Protocol::Http3) == http3);
        rows.fold((0, 0), |(failed, all), row| (failed + row.unfinished, all + row.requests))
    };
    let ((tcp, all_tcp), (quic, all_quic)) = (failed(false), failed(true));
    if all_tcp == 0 || all_quic == 0 {
        return None;
    }
    let (tcp, quic) = (tcp as f64 / all_tcp as f64, quic as f64 / all_quic as f64);
    let text = format!(
        "{} of {}'s requests and {} of HTTP/3's did not end well. They are not in the latencies, and a group that \
         loses its slowest requests looks fast.",
        share(tcp),
        report.control,
        share(quic)
    );
    let apart = (tcp - quic).abs() > 0.005 && (tcp > 2.0 * quic || quic > 2.0 * tcp);
    apart.then(|| warning(text))
}

fn about_bands(report: &Report) -> Option<Note> {
    let main = report.arms.as_ref().map(|arms| &arms.comparison).or(report.comparisons.first())?;
    let verdicts = || main.differences.iter().flatten().map(|difference| difference.verdict);
    if verdicts().any(|verdict| verdict == Verdict::NoBand) {
        return Some(warning(
            "There are too few users to say how far the differences may be chance (fewer than 20 of 200 groups of users).".to_owned(),
        ));
    }
    let unresolved = main.differences.iter().zip(LABELS);
    let unresolved: Vec<_> = unresolved
        .filter(|(difference, _)| {
            difference.is_some_and(|difference| difference.verdict == Verdict::NotResolved)
        })
        .map(|(_, label)| label)
        .collect();
    (!unresolved.is_empty()).then(|| {
        remark(format!(
            "Not resolved, because the band holds 0: {}. More users or more time will tell.",
            unresolved.join(", ")
        ))
    })
}

fn about_broken(report: &Report) -> Option<Note> {
    (report.broken > 0).then(|| {
        let place =
            report.first_broken.as_ref().map(|place| format!(", the first at {place}")).unwrap_or_default();
        let text =
            format!("{} of {} lines could not be read{place}.", count(report.broken), count(report.lines));
        if report.broken.saturating_mul(100) > report.lines { warning(text) } else { remark(text) }
    })
}
