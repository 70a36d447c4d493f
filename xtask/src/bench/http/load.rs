//! What `godwit perf http` is told.

use super::material::file;
use super::programs::Version;
use super::work::{IN_FLIGHT, Work};

/// A request loop of a server, by the clock if there is a rate.
pub(super) fn words(
    version: Version,
    address: &str,
    work: &Work,
    path: Option<&str>,
    rate: Option<f64>,
    server: u32,
    seconds: f64,
) -> Vec<String> {
    let file = file(work.answer.bytes());
    let url = format!("https://{address}/{}", path.unwrap_or(&file));
    let at_once = if version == Version::One { "--connections" } else { "--streams" };
    let mut words: Vec<String> =
        ["perf", "http", version.option(), &url, "--insecure", "--json"].map(str::to_owned).into();
    words.extend([at_once.to_owned(), IN_FLIGHT.to_string()]);
    words.extend(["--duration".to_owned(), format!("{seconds}s"), "--cpu-of".to_owned(), server.to_string()]);
    words.extend(rate.into_iter().flat_map(|rate| ["--rate".to_owned(), format!("{rate:.1}")]));
    words
}

#[cfg(test)]
mod tests {
    use super::super::work;
    use super::*;

    #[test]
    fn a_connection_of_http_1_has_one_request() {
        let words =
            |version, rate| super::words(version, "127.0.0.1:1", &work::CLOSED, None, rate, 7, 0.5).join(" ");
        assert_eq!(
            words(Version::One, None),
            "perf http --h1 https://127.0.0.1:1/100.html --insecure --json --connections 100 --duration 0.5s --cpu-of 7"
        );
        let by_the_clock = words(Version::Three, Some(1234.56));
        assert!(by_the_clock.contains("--h3 ") && by_the_clock.contains(" --streams 100 "));
        assert!(by_the_clock.ends_with(" --rate 1234.6"), "{by_the_clock}");
    }
}
