//! What `godwit perf http` says it has measured.

use super::super::figures::Kind;
use serde_json::Value;

/// The figures of a run in which all was answered, with what was asked for.
pub(super) fn parse(text: &str, bytes: usize) -> Result<Vec<(Kind, f64)>, String> {
    let json: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{text:?}: {error}"))?;
    let number = |place: &str| {
        let value = json.pointer(place).and_then(Value::as_f64);
        value.ok_or_else(|| format!("no {place} in {}", text.trim()))
    };
    let (count, rate) = (number("/requests/count")?, number("/requests/per_second")?);
    let (right, failed) = (number("/http/statuses/200").unwrap_or(0.0), number("/http/failed")?);
    if count <= 0.0 {
        return Err("nothing was answered in time".to_owned());
    }
    if right != count || failed > 0.0 {
        return Err(format!("not all was answered with 200: {}", text.trim()));
    }
    if number("/bytes")? != count * bytes as f64 {
        return Err(format!("not all answers had {bytes} bytes: {}", text.trim()));
    }
    Ok(vec![
        (Kind::Rate, rate),
        (Kind::P50, number("/latency_us/p50")?),
        (Kind::P99, number("/latency_us/p99")?),
        (Kind::ServerCpu, number("/server_cpu/seconds")? * 1e6 / count),
        (Kind::ClientCpu, number("/cpu/seconds")? * 1e6 / count),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = r#"{"scenario":"HTTP/2","bytes":1000,"mbit_per_second":5.0,"requests":{"count":10,"per_second":20.0},
        "latency_us":{"p50":3.0,"p99":4.0,"p99.9":5.0},"cpu":{"seconds":0.0002},"server_cpu":{"seconds":0.0001},
        "http":{"statuses":{"200":10},"failed":0,"reconnected":0}}"#;

    #[test]
    fn processor_time_is_of_a_request() {
        let expected = [
            (Kind::Rate, 20.0),
            (Kind::P50, 3.0),
            (Kind::P99, 4.0),
            (Kind::ServerCpu, 10.0),
            (Kind::ClientCpu, 20.0),
        ];
        let figures = parse(RIGHT, 100).unwrap();
        assert_eq!(figures.len(), expected.len());
        for ((kind, value), (expected_kind, expected)) in figures.into_iter().zip(expected) {
            assert_eq!(kind, expected_kind);
            assert!((value - expected).abs() < 1e-6, "{kind:?}: {value}");
        }
    }

    #[test]
    fn other_answers_are_a_failure() {
        assert!(parse(RIGHT, 99).unwrap_err().contains("99 bytes"));
        assert!(parse(&RIGHT.replace(r#""200":10"#, r#""200":9,"502":1"#), 100).is_err());
        assert!(parse(&RIGHT.replace(r#""failed":0"#, r#""failed":1"#), 100).is_err());
        let none = RIGHT.replace(r#""count":10"#, r#""count":0"#);
        assert_eq!(parse(&none, 100).unwrap_err(), "nothing was answered in time");
        assert!(parse("", 100).is_err());
    }
}
