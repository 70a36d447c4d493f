//! The command line made into what is to be done. Everything that is wrong with it is said before the first
//! packet is sent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use godwit_client::download::{HeaderLineError, HeaderLines, Rounds, file_names};
use godwit_client::{Error, Target, Versions, shortened};
use http::header::{ACCEPT, CONTENT_TYPE, RANGE, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::arguments::Arguments;
use super::remedy::{Wrong, target};
use super::source::Source;
use crate::error::{Failure, plain};
use crate::input::read_at_most;

/// URLs fetched at a time, if nothing else is asked for.
const PARALLEL: u16 = 100;
/// The largest list of URLs, in bytes.
const MOST_LIST: u64 = 256 << 20;

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) items: Vec<Item>,
    pub(super) exchange: Exchange,
    /// URLs fetched at a time.
    pub(super) parallel: usize,
    /// In which order they are fetched, by which versions, and how often.
    pub(super) rounds: Rounds,
    /// They are only to be measured.
    pub(super) measures: bool,
    /// Each request has a connection of its own.
    pub(super) fresh: bool,
}

/// Where a body shall go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// Nowhere: the response's head is all that is wanted.
    Discard,
    File(PathBuf),
    Stdout,
}

/// One URL.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) target: Target,
    pub(super) destination: Destination,
}

/// What is the same for every URL.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    /// From a `Host` header.
    pub(super) authority: Option<Authority>,
    pub(super) source: Option<Source>,
    /// Print the head of each response.
    pub(super) print_head: bool,
    pub(super) max_time: Option<Duration>,
    /// How many redirects are followed; `None`: they are not.
    pub(super) redirects: Option<u8>,
    /// Go on with what an earlier run has left.
    pub(super) continued: bool,
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Plan, Wrong> {
        let exchange = Exchange::new(arguments)?;
        let targets = targets(arguments)?;
        if exchange.source == Some(Source::Stdin) && targets.len() > 1 {
            return Err(format!(
                "--data @-: the standard input can be sent once, but there are {} URLs; give a file (@FILE)",
                targets.len()
            )
            .into());
        }
        let versions = versions(arguments)?;
        if versions == [Versions::Http3]
            && let Some(target) = targets.iter().find(|target| !target.origin().secure)
        {
            let problem = "HTTP/3 is always encrypted, there is no http:// with it; write https://";
            return Err(format!("{target}: {problem}").into());
        }
        let destinations = destinations(arguments, &targets)?;
        let items = targets.into_iter().zip(destinations);
        let items: Vec<Item> = items.map(|(target, destination)| Item { target, destination }).collect();
        let mut rounds = Rounds::new(items.len());
        rounds.versions = versions;
        let repeat = arguments.repeat.repeat;
        rounds.rounds = repeat.unwrap_or(1);
        let measures = repeat.is_some();
        let parallel = arguments.network.parallel.unwrap_or(if measures { 1 } else { PARALLEL });
        let fresh = arguments.repeat.fresh;
        Ok(Plan { items, exchange, parallel: parallel.into(), rounds, measures, fresh })
    }

    /// What is fetched by the `number`th download, and how.
    pub(super) fn task(&self, number: u64) -> Option<(&Item, Versions)> {
        let (item, versions) = self.rounds.get(number)?;
        Some((self.items.get(item)?, versions))
    }
}

fn versions(arguments: &Arguments) -> Result<Vec<Versions>, String> {
    let protocol = &arguments.protocol;
    let all = [
        (protocol.auto, Versions::Auto),
        (protocol.http1, Versions::Http1),
        (protocol.http2, Versions::Http2),
        (protocol.http3, Versions::Http3),
    ];
    let chosen: Vec<Versions> =
        all.iter().filter(|(chosen, _)| *chosen).map(|(_, versions)| *versions).collect();
    match chosen.len() {
        0 => Ok(vec![Versions::Auto]),
        2.. if arguments.repeat.repeat.is_none() => {
            Err("--auto, --http3, --http2 and --http1.1 exclude each other (but for --repeat); give one"
                .to_owned())
        }
        _ => Ok(chosen),
    }
}

impl Exchange {
    fn new(arguments: &Arguments) -> Result<Exchange, String> {
        let request = &arguments.request;
        let source = request.data.as_deref().map(Source::parse).transpose()?;
        let method = match (&request.method, &source) {
            (Some(method), _) => parse_method(method)?,
            (None, _) if request.head => Method::HEAD,
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        };
        if method == Method::HEAD && source.is_some() {
            return Err("-X HEAD with --data: a HEAD request has no body; leave out one of them".to_owned());
        }
        let HeaderLines { mut headers, authority, .. } = parse_headers(&request.headers)?;
        let mut or_default = |name: HeaderName, value: &'static str| {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        };
        or_default(USER_AGENT, concat!("godwit/", env!("CARGO_PKG_VERSION")));
        or_default(ACCEPT, "*/*");
        if let Some(source) = &source {
            or_default(CONTENT_TYPE, source.content_type());
        }
        let print_head = request.head || arguments.output.include || method == Method::HEAD;
        let continued = arguments.output.continued;
        if continued && method != Method::GET {
            return Err(format!(
                "-C with -X {method}: only what GET fetches can be continued; leave out one"
            ));
        }
        if continued && headers.contains_key(RANGE) {
            return Err("-C with a Range header: -C sends its own; leave out one of them".to_owned());
        }
        Ok(Exchange {
            method,
            headers,
            authority,
            source,
            print_head,
            max_time: arguments.network.max_time,
            redirects: request.location.then_some(request.max_redirs),
            continued,
        })
    }
}

fn parse_method(text: &str) -> Result<Method, String> {
    match Method::from_bytes(text.as_bytes()) {
        Ok(Method::CONNECT) => Err("-X CONNECT: tunnels are not supported; use GET, POST, PUT, …".to_owned()),
        Ok(method) => Ok(method),
        Err(_) => Err(format!("-X {}: expected a method such as GET or PUT", text.escape_debug())),
    }
}

fn parse_headers(texts: &[String]) -> Result<HeaderLines, String> {
    let mut lines = HeaderLines::default();
    for text in texts {
        lines.add(text).map_err(|problem| match problem {
            HeaderLineError::TooMany => "too many headers (-H)".to_owned(),
            problem => format!("-H '{}': {problem}", text.escape_debug()),
        })?;
    }
    Ok(lines)
}

fn targets(arguments: &Arguments) -> Result<Vec<Target>, Wrong> {
    let mut targets = Vec::new();
    for text in &arguments.urls {
        let target =
            target(text).map_err(|problem| format!("{}: {problem}", shortened(text).escape_debug()))?;
        targets.push(target);
    }
    if let Some(path) = &arguments.url_file {
        let stdin = path == Path::new("-");
        if stdin && arguments.request.data.as_deref() == Some("@-") {
            return Err("--url-file - and --data @- both read the standard input; give one a file"
                .to_owned()
                .into());
        }
        let shown = if stdin { "the standard input".to_owned() } else { path.display().to_string() };
        let text = read_list(path, stdin).map_err(|problem| {
            let remedy = "--url-file takes a text file with one URL a line";
            Wrong::World(Failure::new(format!("list of URLs {shown}: {problem}; {remedy}")))
        })?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let target = target(line).map_err(|problem| {
                format!("{shown}, line {number}: {}: {problem}", shortened(line).escape_debug())
            })?;
            targets.push(target);
        }
        if targets.is_empty() {
            return Err(format!("there are no URLs in {shown}").into());
        }
    }
    Ok(targets)
}

fn read_list(path: &Path, stdin: bool) -> Result<String, String> {
    let read = if stdin {
        read_at_most(std::io::stdin().lock(), MOST_LIST)
    } else {
        std::fs::File::open(path).and_then(|file| read_at_most(file, MOST_LIST))
    };
    let bytes = read.map_err(|error| plain(&error))?;
    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
}

fn destinations(arguments: &Arguments, targets: &[Target]) -> Result<Vec<Destination>, Wrong> {
    let output = &arguments.output;
    if arguments.request.head || arguments.repeat.repeat.is_some() {
        return Ok(vec![Destination::Discard; targets.len()]);
    }
    if output.remote_name || output.output_dir.is_some() {
        let folder = output.output_dir.clone().unwrap_or_default();
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            return Err(Wrong::World(Failure::new(Error::no_folder(&folder).to_string())));
        }
        let names = file_names(targets.iter().map(Target::path));
        return Ok(names.into_iter().map(|name| Destination::File(folder.join(name))).collect());
    }
    if targets.len() > 1 {
        let remedy = "give -O for files named as in the URLs, or --output-dir DIR";
        let option =
            if output.output.is_some() { "-o names one file" } else { "there is one standard output" };
        return Err(format!("{option}, but there are {} URLs; {remedy}", targets.len()).into());
    }
    let destination = match &output.output {
        Some(path) if path != Path::new("-") => Destination::File(PathBuf::from(path)),
        _ if output.continued => {
            return Err("-C continues a file: say which one with -o FILE, -O or --output-dir"
                .to_owned()
                .into());
        }
        _ => Destination::Stdout,
    };
    Ok(vec![destination; targets.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Get {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn plan(line: &[&str]) -> Result<Plan, Wrong> {
        let words = std::iter::once("get").chain(line.iter().copied());
        Plan::new(&Get::try_parse_from(words).unwrap().arguments)
    }

    fn usage(line: &[&str]) -> String {
        match plan(line) {
            Err(Wrong::Usage(text)) => text,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn the_method_follows_from_the_data() {
        let method = |line: &[&str]| plan(line).unwrap().exchange.method;
        assert_eq!(method(&["https://a/"]), Method::GET);
        assert_eq!(method(&["https://a/", "-d", "x"]), Method::POST);
        assert_eq!(method(&["https://a/", "-d", "x", "-X", "PUT"]), Method::PUT);
        assert_eq!(method(&["https://a/", "-I"]), Method::HEAD);
        assert_eq!(method(&["https://a/", "-X", "purge"]).as_str(), "purge");
    }

    #[test]
    fn headers_are_read_and_have_defaults() {
        let headers = ["-H", "X-A:  b c ", "-H", "x-a: d", "-H", "Host: b:1", "-H", "accept: text/html"];
        let line: Vec<&str> = ["https://a/", "-d", "x=y"].into_iter().chain(headers).collect();
        let exchange = plan(&line).unwrap().exchange;
        let values =
            |name| exchange.headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(values("x-a"), ["b c", "d"]);
        assert_eq!(values("accept"), ["text/html"]);
        assert_eq!(values("content-type"), ["application/x-www-form-urlencoded"]);
        assert!(values("user-agent")[0].starts_with("godwit/"));
        assert_eq!(exchange.authority.unwrap().as_str(), "b:1");
        assert!(exchange.headers.get("host").is_none());
    }

    #[test]
    fn the_protocol_is_left_open_unless_it_is_named() {
        let of = |line: &[&str]| plan(line).unwrap();
        assert_eq!(of(&["https://a/"]).rounds.versions, [Versions::Auto]);
        assert_eq!(of(&["https://a/", "--http1.1"]).rounds.versions, [Versions::Http1]);
        let measured = of(&["https://a/", "--repeat", "9", "--http3", "--http2", "--fresh"]);
        assert_eq!(measured.rounds.versions, [Versions::Http2, Versions::Http3]);
        assert_eq!((measured.rounds.rounds, measured.fresh, measured.parallel), (9, true, 1));
        assert!(measured.measures && !of(&["https://a/"]).measures);
        assert_eq!(measured.items[0].destination, Destination::Discard);
        assert_eq!(of(&["https://a/"]).parallel, 100);
        assert_eq!(of(&["https://a/"]).exchange.redirects, None);
        assert_eq!(of(&["https://a/", "-L"]).exchange.redirects, Some(10));
    }

    #[test]
    fn destinations_follow_the_options() {
        let destinations = |line: &[&str]| -> Vec<Destination> {
            plan(line).unwrap().items.into_iter().map(|item| item.destination).collect()
        };
        let file = |path: &str| Destination::File(path.into());
        assert_eq!(destinations(&["https://a/x"]), [Destination::Stdout]);
        assert_eq!(destinations(&["https://a/x", "-o", "-"]), [Destination::Stdout]);
        assert_eq!(destinations(&["https://a/x", "-o", "y"]), [file("y")]);
        assert_eq!(destinations(&["https://a/x", "https://b/x", "-O"]), [file("x"), file("x.1")]);
        assert_eq!(destinations(&["https://a/x", "-I"]), [Destination::Discard]);
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        let expected = Destination::File(folder.path().join("x"));
        assert_eq!(destinations(&["https://a/x", "--output-dir", text]), [expected]);
    }

    #[test]
    fn wrong_usage_is_explained() {
        let cases: &[(&[&str], &str)] = &[
            (&["a"], "a: expected a URL that begins with https://"),
            (&["https://a/", "https://b/"], "give -O"),
            (&["https://a/", "https://b/", "-o", "x"], "-o names one file, but there are 2 URLs"),
            (&["https://a/", "https://b/", "-O", "-d", "@-"], "can be sent once"),
            (&["https://a/", "-d", "@"], "after @"),
            (&["https://a/", "-X", "CONNECT"], "tunnels"),
            (&["https://a/", "-X", "G T"], "expected a method"),
            (&["https://a/", "-X", "HEAD", "-d", "x"], "no body"),
            (&["https://a/", "-H", "x"], "expected 'NAME: VALUE'"),
            (&["https://a/", "-H", ":path: /x"], "made from the URL"),
            (&["https://a/", "-H", "a b: c"], "not the name of a header"),
            (&["https://a/", "-H", "a: \u{1}"], "control characters"),
            (&["https://a/", "-H", "Connection: close"], "HTTP/3 has no connection header"),
            (&["https://a/", "-H", "te: gzip"], "HTTP/3 has no te header"),
            (&["https://a/", "-H", "content-length: 3"], "leave it out"),
            (&["https://a/", "-H", "host: a b"], "expected a host name"),
            (&["--url-file", "-", "-d", "@-"], "both read the standard input"),
            (&["http://a/", "--http3"], "HTTP/3 is always encrypted"),
            (&["https://a/", "--http3", "--http2"], "exclude each other"),
            (&["https://a/", "-C"], "-C continues a file"),
            (&["https://a/", "-C", "-O", "-X", "PUT"], "only what GET fetches"),
            (&["https://a/", "-C", "-O", "-H", "Range: bytes=1-"], "-C sends its own"),
        ];
        for (line, expected) in cases {
            let text = usage(line);
            assert!(text.contains(expected), "{line:?}: {text}");
        }
    }

    #[test]
    fn lists_of_urls_have_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "https://a/1\n\n # no\r\n  https://a/2  \r\n").unwrap();
        let list = path.to_str().unwrap();
        let plan_of_list = plan(&["https://a/0", "--url-file", list, "-O"]).unwrap();
        let texts: Vec<String> = plan_of_list.items.iter().map(|item| item.target.to_string()).collect();
        assert_eq!(texts, ["https://a/0", "https://a/1", "https://a/2"]);

        std::fs::write(&path, "https://a/1\nftp://a/2\n").unwrap();
        let text = usage(&["--url-file", list, "-O"]);
        assert!(text.contains("line 2: ftp://a/2: expected https:// or http://"), "{text}");
        std::fs::write(&path, "#\n").unwrap();
        assert!(usage(&["--url-file", list, "-O"]).contains("no URLs in"));
    }

    #[test]
    fn what_is_missing_is_said_before_anything_is_sent() {
        let world = |line: &[&str]| match plan(line) {
            Err(Wrong::World(failure)) => failure.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(world(&["https://a/", "--output-dir", "/no/such"]).contains("mkdir -p /no/such"));
        let text = world(&["--url-file", "/no/such", "-O"]);
        assert!(text.contains("/no/such: no such file or directory; --url-file takes"), "{text}");
    }
}
