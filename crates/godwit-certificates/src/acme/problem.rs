//! Why there is no certificate: in words for the operator, and as a reason to wait more or less long.

use std::fmt;
use std::time::Duration;

use instant_acme::{Error, Problem as Document};

/// Who or what is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The server does not answer, or not sensibly; or a file cannot be written.
    Unreachable,
    /// The server does not find that the name is ours.
    NotProved,
    /// The server does not want to.
    Refused,
    /// The server has been asked too often.
    Limited,
}

/// A certificate that could not be had.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) kind: Kind,
    /// What happened and what to do about it.
    pub(super) message: String,
    /// How long the server wants to be left alone.
    pub(super) wait: Option<Duration>,
    /// The account is not known to the server: another has to be made.
    pub(super) no_account: bool,
}

impl Problem {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Problem {
        Problem { kind, message: message.into(), wait: None, no_account: false }
    }

    /// What the library or the server behind `url` says.
    pub(super) fn of(error: &Error, url: &str) -> Problem {
        match error {
            Error::Api(document) => Problem::said(document, url),
            Error::Json(_) => Problem::new(
                Kind::Unreachable,
                format!("what answers at {url} does not speak ACME; check the URL of the directory"),
            ),
            Error::Timeout(_) => {
                Problem::new(Kind::NotProved, format!("{url} has not decided in time; it is asked again"))
            }
            other => Problem::new(Kind::Unreachable, format!("cannot ask {url}: {}", chain(other))),
        }
    }

    fn said(document: &Document, url: &str) -> Problem {
        let kind = document.r#type.as_deref().unwrap_or_default();
        let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind);
        let detail = detail(document);
        let refused =
            |remedy: &str| Problem::new(Kind::Refused, format!("{url} refuses: {detail}; {remedy}"));
        match kind {
            "rateLimited" => Problem::new(
                Kind::Limited,
                format!(
                    "{url} has been asked too often: {detail}; wait, or try out with letsencrypt-staging"
                ),
            ),
            "accountDoesNotExist" => Problem { no_account: true, ..refused("another account is made") },
            "userActionRequired" | "agreementRequired" => {
                refused("read its terms of service, which have changed, and accept them on its pages")
            }
            "externalAccountRequired" => refused(
                "it wants an account made on its pages, which is not supported: choose another authority",
            ),
            "invalidContact" | "unsupportedContact" => refused("give another email"),
            "rejectedIdentifier" | "unsupportedIdentifier" | "malformed" => {
                refused("check the names of the site: only public host names can have a certificate")
            }
            "caa" => Problem::new(
                Kind::NotProved,
                format!("{detail}; the CAA record in DNS has to allow this authority"),
            ),
            "dns" | "connection" | "unauthorized" | "tls" | "incorrectResponse" => {
                Problem::new(Kind::NotProved, detail)
            }
            "serverInternal" | "badNonce" | "" => {
                Problem::new(Kind::Unreachable, format!("{url} is in trouble: {detail}; it is asked again"))
            }
            _ => refused("ask the certificate authority"),
        }
    }

    /// What the server found when it checked a name.
    pub(super) fn not_proved(name: &str, document: Option<&Document>, port: u16) -> Problem {
        let found = document.map_or_else(|| "it does not say why".to_owned(), detail);
        let kind = document.and_then(|document| document.r#type.as_deref()).unwrap_or_default();
        let remedy = match kind.rsplit(':').next() {
            Some("dns") => "the name needs an A or AAAA record that leads here".to_owned(),
            Some("caa") => "the CAA record in DNS has to allow this authority".to_owned(),
            _ => format!(
                "the name has to lead to this server in DNS, and its port {port} (TCP) has to be open to the world"
            ),
        };
        Problem::new(Kind::NotProved, format!("the check of {name} failed: {found}; {remedy}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// The server's own words on one line, and not too many of them.
fn detail(document: &Document) -> String {
    let mut text = document.detail.clone().or_else(|| document.r#type.clone()).unwrap_or_default();
    for part in document.subproblems.iter().filter_map(|part| part.detail.as_deref()) {
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(part);
    }
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().take(400).map(plain).collect();
    let text = text.trim().trim_end_matches('.').to_owned();
    if text.is_empty() { "no reason given".to_owned() } else { text }
}

/// An error with its causes, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = inner.source();
    }
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(kind: &str, detail: &str) -> Document {
        let text =
            serde_json::json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn every_refusal_has_a_remedy() {
        for (kind, expected, remedy) in [
            ("rateLimited", Kind::Limited, "letsencrypt-staging"),
            ("rejectedIdentifier", Kind::Refused, "check the names"),
            ("externalAccountRequired", Kind::Refused, "another authority"),
            ("invalidContact", Kind::Refused, "another email"),
            ("userActionRequired", Kind::Refused, "terms of service"),
            ("serverInternal", Kind::Unreachable, "asked again"),
            ("somethingNew", Kind::Refused, "ask the certificate authority"),
        ] {
            let problem = Problem::of(&Error::Api(document(kind, "Some\nreason.")), "https://ca.test/dir");
            assert_eq!(problem.kind, expected, "{kind}");
            assert!(problem.message.contains("Some reason"), "{problem}");
            assert!(problem.message.contains(remedy), "{problem}");
        }
        assert!(Problem::of(&Error::Api(document("accountDoesNotExist", "x")), "u").no_account);
    }

    #[test]
    fn checks_that_failed_name_the_port() {
        let text = Problem::not_proved("a.test", Some(&document("connection", "refused")), 443).message;
        assert!(
            text.starts_with("the check of a.test failed: refused;") && text.contains("port 443"),
            "{text}"
        );
        let text = Problem::not_proved("a.test", Some(&document("dns", "NXDOMAIN")), 80).message;
        assert!(text.contains("A or AAAA record"), "{text}");
    }
}
