//! What a client says it has measured.

use serde_json::Value;

/// A run of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// Bits, requests or handshakes in a second.
    pub(super) rate: f64,
    /// Gigabytes (10^9 bytes), requests or handshakes.
    pub(super) amount: f64,
    pub(super) is_bulk: bool,
    /// In microseconds, for requests and handshakes: the median, and what 99 % and 99.9 % do not exceed.
    pub(super) latency: Option<[f64; 3]>,
}

/// Reads a line of JSON as Godwit or another writes it.
pub(super) fn parse(text: &str) -> Result<Outcome, String> {
    let json: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{text:?}: {error}"))?;
    let first = |places: &[&str]| places.iter().find_map(|place| json.pointer(place)?.as_f64());
    let bulk = first(&["/bits_per_second"]).or_else(|| Some(first(&["/mbit_per_second"])? * 1e6));
    let each = first(&[
        "/requests/per_second",
        "/handshakes/per_second",
        "/requests_per_second",
        "/handshakes_per_second",
    ]);
    let amount = match bulk {
        Some(_) => first(&["/bytes"]).map(|bytes| bytes / 1e9),
        None => first(&["/requests/count", "/handshakes/count", "/requests", "/handshakes"]),
    };
    let rate = bulk.or(each).filter(|rate| *rate > 0.0);
    let (Some(rate), Some(amount)) = (rate, amount) else {
        return Err(format!("no rate above zero in {}", text.trim()));
    };
    let latency = |name: &str| first(&[&format!("/latency_us/{name}")]);
    let latency = match (latency("p50"), latency("p99"), latency("p99_9").or(latency("p99.9"))) {
        (Some(p50), Some(p99), Some(p99_9)) => Some([p50, p99, p99_9]),
        _ => None,
    };
    Ok(Outcome { rate, amount, is_bulk: bulk.is_some(), latency })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_are_understood() {
        let ours = parse(r#"{"scenario":"download","bytes":2500000000,"mbit_per_second":10000.5}"#).unwrap();
        assert_eq!(ours, Outcome { rate: 10000.5e6, amount: 2.5, is_bulk: true, latency: None });
        let theirs = parse("{\"test\":\"upload\",\"bytes\":1000000000,\"bits_per_second\":8e9}\n").unwrap();
        assert_eq!(theirs, Outcome { rate: 8e9, amount: 1.0, is_bulk: true, latency: None });
        let latency = r#""latency_us":{"p50":1.0,"p90":2,"p99":3,"p99_9":4,"p99_99":5,"max":6}"#;
        let each = Outcome { rate: 50.0, amount: 100.0, is_bulk: false, latency: Some([1.0, 3.0, 4.0]) };
        let other = latency.replace('_', ".").replace("latency.us", "latency_us");
        let ours = format!(r#"{{"requests":{{"count":100,"per_second":50.0}},{other}}}"#);
        assert_eq!(parse(&ours).unwrap(), each);
        let theirs = format!(r#"{{"handshakes":100,"handshakes_per_second":50.0,{latency}}}"#);
        assert_eq!(parse(&theirs).unwrap(), each);
    }

    #[test]
    fn a_rate_of_nothing_is_a_failure() {
        assert!(parse("").is_err());
        assert!(parse("{}").unwrap_err().contains("no rate"));
        assert!(parse(r#"{"requests":0,"requests_per_second":0}"#).is_err());
    }
}
