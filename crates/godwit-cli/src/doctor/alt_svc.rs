//! What a server says of its alternatives: the Alt-Svc field (RFC 7838).

use std::time::Duration;

/// How long an alternative may be remembered if it does not say (RFC 7838 section 3.1).
const USUAL_AGE: Duration = Duration::from_secs(86_400);

/// One alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternative {
    pub(super) protocol: String,
    /// Empty for the same host.
    pub(super) host: String,
    pub(super) port: u16,
    /// `ma`.
    pub(super) age: Duration,
}

/// A field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AltSvc {
    /// All alternatives are to be forgotten.
    Clear,
    Alternatives(Vec<Alternative>),
}

/// Reads a field's value.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse(text: &str) -> Result<AltSvc, String> {
    if text.trim() == "clear" {
        return Ok(AltSvc::Clear);
    }
    split(text, ',').into_iter().map(alternative).collect::<Result<_, _>>().map(AltSvc::Alternatives)
}

fn alternative(text: &str) -> Result<Alternative, String> {
    let mut parts = split(text, ';').into_iter();
    let first = parts.next().unwrap_or_default();
    let (protocol, place) = first.split_once('=').ok_or_else(|| format!("{first:?} has no ="))?;
    let place = unquote(place).ok_or_else(|| format!("{place} is not in quotation marks"))?;
    let (host, port) = place.rsplit_once(':').ok_or_else(|| format!("{place:?} has no port"))?;
    let port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
    let mut age = USUAL_AGE;
    for parameter in parts {
        if let Some(seconds) = parameter.strip_prefix("ma=") {
            let seconds = unquote(seconds).unwrap_or(seconds);
            age = seconds.parse().map(Duration::from_secs).map_err(|_| format!("{parameter:?} is no age"))?;
        }
    }
    Ok(Alternative { protocol: protocol.to_owned(), host: host.to_owned(), port, age })
}

fn unquote(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// Splits at separators that do not stand in quotation marks; parts are trimmed, empty ones left out.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_real_servers_are_read() {
        let AltSvc::Alternatives(all) =
            parse(r#"h3=":443"; ma=2592000,h3-29="alt.example.com:8443"; ma="60"; persist=1"#).unwrap()
        else {
            panic!("alternatives");
        };
        let wanted = |protocol: &str, host: &str, port, age| Alternative {
            protocol: protocol.to_owned(),
            host: host.to_owned(),
            port,
            age: Duration::from_secs(age),
        };
        assert_eq!(all, [wanted("h3", "", 443, 2_592_000), wanted("h3-29", "alt.example.com", 8443, 60)]);
        assert_eq!(parse(" clear ").unwrap(), AltSvc::Clear);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, problem) in [
            ("h3", "has no ="),
            ("h3=:443", "quotation marks"),
            ("h3=\"443\"", "no port"),
            ("h3=\":x\"", "not a port"),
            ("h3=\":443\"; ma=x", "no age"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
