//! Redirects: where to, from a template with `{path}`, `{query}` and `{host}`.
//!
//! `{query}` is the query with its question mark, or nothing; behind a question mark of the template's own it
//! comes without. What a client sent cannot end the header line (it is valid in a URL, and everything else is
//! encoded), nor lead to another host than the template says: a path begins with exactly one slash, a backslash
//! (which browsers take for a slash) is encoded, and nothing of the client's may continue the template's host.

use http::header::{CONTENT_LENGTH, HeaderValue, LOCATION};
use http::{Response, StatusCode, Uri};
use percent_encoding::percent_encode;

use super::host::Host;
use crate::path::INVALID;
use godwit_body::{BoxBody, bare};

/// Where a redirect leads, with places for parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Path,
    /// Whether a question mark of the template comes before it.
    Query {
        inside: bool,
    },
    Host,
}

impl Template {
    /// # Errors
    /// In words: what is wrong and what would be right.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut inside = false;
        while !rest.is_empty() {
            let at = rest.find(['{', '}']).unwrap_or(rest.len());
            let (literal, after) = rest.split_at(at);
            if !literal.is_empty() {
                inside |= literal.contains('?');
                parts.push(Part::Literal(literal.to_owned()));
            }
            if after.is_empty() {
                break;
            }
            let (name, after) = after.strip_prefix('{').and_then(|after| after.split_once('}')).ok_or_else(|| {
                format!("{text:?} has a brace without its partner; places are {{path}}, {{query}} and {{host}}")
            })?;
            parts.push(match name {
                "path" => Part::Path,
                "query" => Part::Query { inside },
                "host" => Part::Host,
                _ => {
                    return Err(format!(
                        "{text:?} has a place {{{name}}} that is not known; there are {{path}}, {{query}} and {{host}}"
                    ));
                }
            });
            rest = after;
        }
        let template = Template(parts);
        template.check(text)?;
        Ok(template)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('\\') {
            return Err(format!(
                "{text:?} has characters that a URL cannot have; percent-encode them (a space is %20)"
            ));
        }
        let sample = self.fill("host.invalid", "/p", Some("q"));
        let own = text.starts_with('/') || text.starts_with("{path}");
        let rest = sample.strip_prefix("https://").or_else(|| sample.strip_prefix("http://"));
        match rest {
            None if own && !sample.starts_with("//") => Ok(()),
            None => {
                Err(format!("{text:?} is not an address; write https://HOST{{path}} or a path such as /new"))
            }
            Some(rest) => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
                let valid = !authority.contains('@') && Host::parse(authority).is_some();
                if !valid || sample.parse::<Uri>().is_err() {
                    return Err(format!("{text:?} has no valid host; write https://HOST{{path}}"));
                }
                // A query without the question mark before it would go on with the host.
                let mut before = String::new();
                for part in &self.0 {
                    match part {
                        Part::Literal(literal) => before.push_str(literal),
                        Part::Host => before.push('h'),
                        Part::Path | Part::Query { .. } => break,
                    }
                }
                let ends = before.splitn(4, '/').count() > 3 || !before.ends_with(':');
                if ends { Ok(()) } else { Err(format!("{text:?} ends its host with a colon; add the port")) }
            }
        }
    }

    fn fill(&self, host: &str, path: &str, query: Option<&str>) -> String {
        let mut url = String::with_capacity(64 + path.len());
        for part in &self.0 {
            match part {
                Part::Literal(literal) => url.push_str(literal),
                Part::Host => url.push_str(host),
                Part::Path => {
                    let path = path.trim_start_matches(['/', '\\']);
                    if !url.ends_with('/') {
                        url.push('/');
                    }
                    url.push_str(&encoded(path));
                }
                Part::Query { inside } => {
                    if let Some(query) = query.filter(|query| !query.is_empty()) {
                        if !inside {
                            url.push('?');
                        }
                        url.push_str(&encoded(query));
                    }
                }
            }
        }
        url
    }

    /// The address for a request to `host`. `None` if it cannot be told: a place for the host, and none known.
    pub(super) fn location(&self, host: Option<&Host>, uri: &Uri) -> Option<HeaderValue> {
        if host.is_none() && self.0.contains(&Part::Host) {
            return None;
        }
        let host = host.map(Host::in_url).unwrap_or_default();
        HeaderValue::try_from(self.fill(&host, uri.path(), uri.query())).ok()
    }
}

/// Leaves what is valid in a path or query, percent signs too, and encodes the rest.
fn encoded(text: &str) -> String {
    percent_encode(text.as_bytes(), INVALID).to_string()
}

/// The response that leads there.
pub(crate) fn to(location: HeaderValue, status: StatusCode) -> Response<BoxBody> {
    let mut response = bare(status);
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(template: &str, host: &str, target: &str) -> String {
        let uri: Uri = target.parse().unwrap();
        let location = Template::parse(template).unwrap().location(Host::parse(host).as_ref(), &uri);
        location.unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn places_are_filled_in() {
        let www = "https://www.example.com{path}{query}";
        assert_eq!(fill(www, "example.com", "/a%20b/c?d=e&f"), "https://www.example.com/a%20b/c?d=e&f");
        assert_eq!(fill(www, "example.com", "/"), "https://www.example.com/");
        assert_eq!(fill("https://new.test/old{path}", "a", "/x?y"), "https://new.test/old/x");
        assert_eq!(fill("https://www.{host}{path}", "a.test:8443", "/x"), "https://www.a.test/x");
        assert_eq!(fill("https://{host}:8443{path}", "[::1]:80", "/x"), "https://[::1]:8443/x");
        assert_eq!(fill("/login?{query}", "a", "/x?y=1"), "/login?y=1");
        assert_eq!(fill("/login?from={path}&{query}", "a", "/x?y=1"), "/login?from=/x&y=1");
        assert_eq!(fill("/new", "a", "/x?y"), "/new");
    }

    #[test]
    fn a_client_cannot_choose_the_host() {
        for (template, target, expected) in [
            ("{path}{query}", "//evil.test/x", "/evil.test/x"),
            ("{path}", "/////evil.test", "/evil.test"),
            ("/{path}", "/evil.test", "/evil.test"),
            ("https://a.test{path}", "//@evil.test", "https://a.test/@evil.test"),
            ("https://a.test{query}", "/x?.evil.test", "https://a.test?.evil.test"),
            ("https://a.test/b/{path}", "//c", "https://a.test/b/c"),
        ] {
            assert_eq!(fill(template, "a.test", target), expected, "{template} {target}");
        }
        assert_eq!(encoded("\\evil.test\r\n"), "%5Cevil.test%0D%0A");
    }

    #[test]
    fn templates_say_what_is_wrong_with_them() {
        for (template, part) in [
            ("www.example.com", "not an address"),
            ("//evil.test{path}", "not an address"),
            ("{host}{path}", "not an address"),
            ("ftp://a.test/", "not an address"),
            ("", "not an address"),
            ("https://", "no valid host"),
            ("https://a b/", "percent-encode"),
            ("https://a.test/{uri}", "{uri}"),
            ("https://a.test/{path", "brace"),
            ("https://a.test/path}", "brace"),
            ("https://u@a.test/", "no valid host"),
            ("https://a.test:{path}", "colon"),
            ("/a\\b", "percent-encode"),
        ] {
            let problem = Template::parse(template).unwrap_err();
            assert!(problem.contains(part), "{template}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn redirects_stay_where_the_template_says(path in "/[!-~]{0,30}") {
            let Ok(uri) = path.parse::<Uri>() else { return Ok(()) };
            let relative = Template::parse("{path}{query}").unwrap().location(None, &uri).unwrap();
            let relative = relative.to_str().unwrap();
            prop_assert!(relative.starts_with('/') && !relative.starts_with("//") && !relative.starts_with("/\\"));
            let absolute = Template::parse("https://a.test{path}{query}").unwrap().location(None, &uri).unwrap();
            let absolute: Uri = absolute.to_str().unwrap().parse().unwrap();
            prop_assert_eq!(absolute.host(), Some("a.test"));
        }
    }
}
