//! What is found in a trace, as text. What came from the network is shown without control characters.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::analysis::{Analysis, Count};
use godwit_text::{Style, duration, printable, size};

/// Appends the report of one trace.
pub(super) fn render(out: &mut String, path: &Path, analysis: &Analysis, style: Style) {
    let name = path.display().to_string();
    let _ = writeln!(out, "{}", style.bold(&printable(&name)));
    summary(out, analysis);
    stalls(out, analysis, style);
    losses(out, analysis, style);
    if analysis.cut_off {
        let _ =
            writeln!(out, "  {}", style.yellow("the trace is cut off: its writer did not come to its end"));
    }
}

fn line(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "  {label:<12} {}", printable(text));
}

fn summary(out: &mut String, analysis: &Analysis) {
    let known = |text: &Option<String>, what: &str| text.as_ref().map(|text| format!(", {what} {text}"));
    let mut who = format!("seen by the {}", analysis.vantage);
    who += &known(&analysis.remote, "peer").unwrap_or_default();
    who += &known(&analysis.version, "version").unwrap_or_default();
    who += &known(&analysis.alpn, "protocol").unwrap_or_default();
    line(out, "connection", &format!("{}, {who}", analysis.group));
    if let Some(began) = &analysis.began {
        line(out, "began", began);
    }
    let at =
        |time: Option<Duration>| time.map_or("never".to_owned(), |time| format!("after {}", duration(time)));
    let handshake = format!("complete {}, confirmed {}", at(analysis.complete), at(analysis.confirmed));
    line(out, "handshake", &handshake);
    line(out, "lasted", &duration(analysis.length));
    line(out, "closed", analysis.closed.as_deref().unwrap_or("not seen"));
    line(out, "sent", &packets(&analysis.sent, analysis.stream_bytes.0, analysis.length));
    line(out, "received", &packets(&analysis.received, analysis.stream_bytes.1, analysis.length));
    if !analysis.dropped.is_empty() {
        let kinds = analysis.dropped.iter().map(|(why, count)| format!("{} {why}", count.packets));
        line(out, "not taken in", &kinds.collect::<Vec<_>>().join(", ").replace('_', " "));
    }
    let rtt = analysis.rtt;
    if let Some(least) = rtt.least {
        let text = format!("least {least:.1} ms, in the end {:.1} ms, most {:.1} ms", rtt.smoothed, rtt.most);
        line(out, "round trip", &text);
    }
    let slow_start = analysis
        .slow_start_ended
        .map_or("slow start to the end".to_owned(), |time| format!("slow start for {}", duration(time)));
    line(
        out,
        "window",
        &format!(
            "at most {}, {slow_start}, reduced {} times",
            size(analysis.largest_window),
            analysis.reductions
        ),
    );
    let mut more = Vec::new();
    if let Some(mtu) = analysis.mtu {
        more.push(format!("MTU {mtu}"));
    }
    if let Some(ecn) = &analysis.ecn {
        more.push(format!("ECN {ecn}"));
    }
    for (count, what) in [
        (analysis.probe_timeouts, "probe timeouts"),
        (analysis.migrations, "changes of path"),
        (analysis.key_updates, "key updates"),
    ] {
        if count > 0 {
            more.push(format!("{count} {what}"));
        }
    }
    if !more.is_empty() {
        line(out, "also", &more.join(", "));
    }
}

fn packets(counts: &BTreeMap<String, Count>, stream: u64, length: Duration) -> String {
    let all = counts.values().fold(Count::default(), |all, count| Count {
        packets: all.packets + count.packets,
        bytes: all.bytes + count.bytes,
    });
    let kinds = counts.iter().map(|(kind, count)| format!("{} {kind}", count.packets));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let seconds = length.as_secs_f64().max(1e-6);
    let rate = all.bytes as f64 * 8e-6 / seconds;
    format!(
        "{} packets ({kinds}), {}, of streams {}, {rate:.2} Mbit/s",
        all.packets,
        size(all.bytes),
        size(stream)
    )
}

fn stalls(out: &mut String, analysis: &Analysis, style: Style) {
    let _ = writeln!(out, "  {}", style.bold("stalls"));
    let mut any = false;
    for (reason, count, lasted) in analysis.stalls.totals() {
        any = true;
        let _ = writeln!(
            out,
            "    {count:>5} waiting for {:<14} {:>8} in all",
            reason.to_string(),
            duration(lasted)
        );
    }
    if !any {
        let _ = writeln!(out, "    none");
        return;
    }
    let _ = writeln!(out, "    the longest:");
    for stall in analysis.stalls.longest() {
        let _ = writeln!(
            out,
            "      at {:>9.3} s for {:>8}: {}",
            stall.from.as_secs_f64(),
            duration(stall.lasted),
            stall.reason
        );
    }
}

fn losses(out: &mut String, analysis: &Analysis, style: Style) {
    let losses = &analysis.losses;
    let _ = writeln!(out, "  {}", style.bold("losses"));
    let total = losses.total();
    if total == 0 {
        let _ = writeln!(out, "    none");
        return;
    }
    let sent: u64 = analysis.sent.values().map(|count| count.packets).sum();
    let share = total as f64 * 100.0 / sent.max(1) as f64;
    let _ = writeln!(
        out,
        "    {total} packets ({share:.2} % of those sent) in {} episodes; noticed by later packets {}, by time {}, \
         otherwise {}",
        losses.episodes, losses.reordering, losses.time, losses.other
    );
    for (cause, count) in losses.causes() {
        let _ = writeln!(out, "    {count:>5} {cause}");
    }
}
