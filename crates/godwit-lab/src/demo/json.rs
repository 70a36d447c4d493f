//! The figures for programs.

use serde_json::{Map, Value, json};

use super::samples::{Distribution, Figures, PERMILLES, Protocol};
use super::setting::Setting;

/// One object, with a line end. Times are in milliseconds; a percentile that too few samples support is `null`.
pub(super) fn text(setting: &Setting, figures: &Figures) -> String {
    let conditions = &setting.conditions;
    let protocol = |protocol: Protocol| {
        let measured = figures.of(protocol);
        json!({
            "visits": measured.visits, "failed": measured.failed.count, "unfinished": measured.unfinished,
        })
    };
    let latency: Map<String, Value> = figures
        .rows()
        .into_iter()
        .map(|row| (row.key.to_owned(), json!({ "h2": percentiles(row.h2), "h3": percentiles(row.h3) })))
        .collect();
    let value = json!({
        "link": {
            "preset": setting.preset.name(),
            "rtt_ms": millis(conditions.rtt.as_secs_f64()),
            "loss": conditions.loss,
            "burst_ms": millis(conditions.burst.as_secs_f64()),
            "megabits_per_second": conditions.megabits,
        },
        "tcp": "kernel",
        "tcp_about": setting.control,
        "visitors": setting.visitors,
        "files_on_page": setting.objects,
        "seconds": setting.seconds,
        "seed": setting.seed,
        "packets_lost": setting.lost_share(),
        "packets_late": setting.late_share(),
        "h2": protocol(Protocol::H2),
        "h3": protocol(Protocol::H3),
        "latency_ms": latency,
    });
    format!("{value:#}\n")
}

fn percentiles(distribution: &Distribution) -> Value {
    let mut map = Map::new();
    map.insert("count".to_owned(), distribution.count().into());
    for permille in PERMILLES {
        let value = distribution.permille(permille).map(|time| millis(time.as_secs_f64()));
        map.insert(format!("p{}", permille / 10), value.into());
    }
    Value::Object(map)
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::samples::Recorder;
    use crate::demo::setting::tests::setting;

    #[test]
    fn it_is_json_and_tells_whose_tcp_it_was() {
        let value: Value = serde_json::from_str(&text(&setting(), &Recorder::default().figures())).unwrap();
        assert_eq!((&value["tcp"], &value["tcp_about"]), (&"kernel".into(), &"cubic".into()));
        assert_eq!(value["latency_ms"]["all"]["h3"]["p99"], Value::Null);
        assert_eq!(value["link"]["rtt_ms"], 350.0);
    }
}
