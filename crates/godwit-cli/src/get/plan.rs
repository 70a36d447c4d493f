//! The command line made into what is to be done. Everything that is wrong with it is said before the first
//! packet is sent.

use std::path::{Path, PathBuf};

use godwit_client::download::{Data, Download, HeaderLineError, HeaderLines, Many, Place, file_names};
use godwit_client::{Error, Target, Versions};
use godwit_text::read_at_most;
use http::header::{ACCEPT, CONTENT_TYPE, RANGE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method};

use super::arguments::Arguments;
use super::remedy::target;
use crate::error::{Failure, plain};

/// URLs fetched at a time, if nothing else is asked for.
const PARALLEL: u16 = 100;
/// The largest list of URLs, in bytes.
const MOST_LIST: u64 = 256 << 20;

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) many: Many,
    /// Print the head of each response.
    pub(super) print_head: bool,
    /// URLs fetched at a time.
    pub(super) parallel: usize,
    /// They are only to be measured.
    pub(super) measures: bool,
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Plan, Failure> {
        let targets = targets(arguments)?;
        let Some(first) = targets.first() else { return Err(Failure::usage("there are no URLs")) };
        let template = template(arguments, first).map_err(Failure::usage)?;
        if arguments.request.data == Some(Data::Stdin) && targets.len() > 1 {
            return Err(Failure::usage(format!(
                "--data @-: the standard input can be sent once, but there are {} URLs; give a file (@FILE)",
                targets.len()
            )));
        }
        let output = &arguments.output;
        let print_head = arguments.request.head || output.include || template.method == Method::HEAD;
        let versions = versions(arguments).map_err(Failure::usage)?;
        if versions == [Versions::Http3]
            && let Some(target) = targets.iter().find(|target| !target.origin().secure)
        {
            let problem = "HTTP/3 is always encrypted, there is no http:// with it; write https://";
            return Err(Failure::usage(format!("{target}: {problem}")));
        }
        let destinations = destinations(arguments, &targets)?;
        let items = targets.into_iter().zip(destinations).collect();
        let mut many = Many::new(template, items);
        let repeat = arguments.repeat.repeat;
        (many.rounds.versions, many.rounds.rounds) = (versions, repeat.unwrap_or(1));
        let measures = repeat.is_some();
        let parallel = arguments.network.parallel.unwrap_or(if measures { 1 } else { PARALLEL });
        Ok(Plan { many, print_head, parallel: parallel.into(), measures })
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

fn template(arguments: &Arguments, target: &Target) -> Result<Download, String> {
    let request = &arguments.request;
    let mut template = Download::new(target.clone());
    template.method = match &request.method {
        Some(method) => parse_method(method)?,
        None if request.head => Method::HEAD,
        None if request.data.is_some() => Method::POST,
        None => Method::GET,
    };
    if template.method == Method::HEAD && request.data.is_some() {
        return Err("-X HEAD with --data: a HEAD request has no body; leave out one of them".to_owned());
    }
    let HeaderLines { mut headers, authority, .. } = parse_headers(&request.headers)?;
    template.continued = arguments.output.continued;
    if template.continued && template.method != Method::GET {
        let method = &template.method;
        return Err(format!("-C with -X {method}: only what GET fetches can be continued; leave out one"));
    }
    if template.continued && headers.contains_key(RANGE) {
        return Err("-C with a Range header: -C sends its own; leave out one of them".to_owned());
    }
    let mut or_default = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    or_default(USER_AGENT, concat!("godwit/", env!("CARGO_PKG_VERSION")));
    or_default(ACCEPT, "*/*");
    if let Some(data) = &request.data {
        or_default(CONTENT_TYPE, data.content_type());
        template.body = data.body();
    }
    (template.headers, template.authority) = (headers, authority);
    template.compressed = request.compressed;
    template.redirects = request.location.then_some(request.max_redirs);
    (template.max_time, template.alone) = (arguments.network.max_time, arguments.repeat.fresh);
    Ok(template)
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

fn targets(arguments: &Arguments) -> Result<Vec<Target>, Failure> {
    let named = arguments.urls.iter().map(|text| target(text).map_err(Failure::usage));
    let mut targets = named.collect::<Result<Vec<Target>, Failure>>()?;
    let Some(path) = &arguments.url_file else { return Ok(targets) };
    let stdin = path == Path::new("-");
    if stdin && arguments.request.data == Some(Data::Stdin) {
        let problem = "--url-file - and --data @- both read the standard input; give one a file";
        return Err(Failure::usage(problem));
    }
    let shown = if stdin { "the standard input".to_owned() } else { path.display().to_string() };
    let text = read_list(path, stdin).map_err(|problem| {
        let remedy = "--url-file takes a text file with one URL a line";
        Failure::new(format!("list of URLs {shown}: {problem}; {remedy}"))
    })?;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if !line.is_empty() && !line.starts_with('#') {
            let wrong = |problem| Failure::usage(format!("{shown}, line {number}: {problem}"));
            targets.push(target(line).map_err(wrong)?);
        }
    }
    if targets.is_empty() {
        return Err(Failure::usage(format!("there are no URLs in {shown}")));
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

fn destinations(arguments: &Arguments, targets: &[Target]) -> Result<Vec<Place>, Failure> {
    let output = &arguments.output;
    if arguments.request.head || arguments.repeat.repeat.is_some() {
        return Ok(vec![Place::Nowhere; targets.len()]);
    }
    if output.remote_name || output.output_dir.is_some() {
        let folder = output.output_dir.clone().unwrap_or_default();
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            return Err(Failure::new(Error::no_folder(&folder).to_string()));
        }
        let names = file_names(targets.iter().map(Target::path));
        return Ok(names.into_iter().map(|name| Place::File(folder.join(name))).collect());
    }
    if targets.len() > 1 {
        let remedy = "give -O for files named as in the URLs, or --output-dir DIR";
        let option =
            if output.output.is_some() { "-o names one file" } else { "there is one standard output" };
        return Err(Failure::usage(format!("{option}, but there are {} URLs; {remedy}", targets.len())));
    }
    let destination = match &output.output {
        Some(path) if path != Path::new("-") => Place::File(PathBuf::from(path)),
        _ if output.continued => {
            return Err(Failure::usage(
                "-C continues a file: say which one with -o FILE, -O or --output-dir",
            ));
        }
        _ => Place::Stdout,
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

    fn plan(line: &[&str]) -> Result<Plan, Failure> {
        let words = std::iter::once("get").chain(line.iter().copied());
        Plan::new(&Get::try_parse_from(words).unwrap().arguments)
    }

    fn refused(line: &[&str], code: u8) -> String {
        let failure = plan(line).unwrap_err();
        assert_eq!(failure.code(), code, "{line:?}: {failure}");
        failure.to_string()
    }

    fn usage(line: &[&str]) -> String {
        refused(line, 2)
    }

    #[test]
    fn the_method_follows_from_the_data() {
        let method = |line: &[&str]| plan(line).unwrap().many.template.method;
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
        let template = plan(&line).unwrap().many.template;
        let values =
            |name| template.headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(values("x-a"), ["b c", "d"]);
        assert_eq!(values("accept"), ["text/html"]);
        assert_eq!(values("content-type"), ["application/x-www-form-urlencoded"]);
        assert!(values("user-agent")[0].starts_with("godwit/"));
        assert_eq!(template.authority.unwrap().as_str(), "b:1");
        assert!(template.headers.get("host").is_none());
    }

    #[test]
    fn the_protocol_is_left_open_unless_it_is_named() {
        let of = |line: &[&str]| plan(line).unwrap();
        assert_eq!(of(&["https://a/"]).many.rounds.versions, [Versions::Auto]);
        assert_eq!(of(&["https://a/", "--http1.1"]).many.rounds.versions, [Versions::Http1]);
        let measured = of(&["https://a/", "--repeat", "9", "--http3", "--http2", "--fresh"]);
        assert_eq!(measured.many.rounds.versions, [Versions::Http2, Versions::Http3]);
        assert_eq!(
            (measured.many.rounds.rounds, measured.many.template.alone, measured.parallel),
            (9, true, 1)
        );
        assert!(measured.measures && !of(&["https://a/"]).measures);
        assert_eq!(measured.many.items[0].1, Place::Nowhere);
        assert_eq!(of(&["https://a/"]).parallel, 100);
        assert_eq!(of(&["https://a/"]).many.template.redirects, None);
        assert_eq!(of(&["https://a/", "-L"]).many.template.redirects, Some(10));
    }

    #[test]
    fn destinations_follow_the_options() {
        let destinations = |line: &[&str]| -> Vec<Place> {
            plan(line).unwrap().many.items.into_iter().map(|(_, place)| place).collect()
        };
        let file = |path: &str| Place::File(path.into());
        assert_eq!(destinations(&["https://a/x"]), [Place::Stdout]);
        assert_eq!(destinations(&["https://a/x", "-o", "-"]), [Place::Stdout]);
        assert_eq!(destinations(&["https://a/x", "-o", "y"]), [file("y")]);
        assert_eq!(destinations(&["https://a/x", "https://b/x", "-O"]), [file("x"), file("x.1")]);
        assert_eq!(destinations(&["https://a/x", "-I"]), [Place::Nowhere]);
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        let expected = Place::File(folder.path().join("x"));
        assert_eq!(destinations(&["https://a/x", "--output-dir", text]), [expected]);
    }

    #[test]
    fn wrong_usage_is_explained() {
        let cases: &[(&[&str], &str)] = &[
            (&["a"], "a: expected a URL that begins with https://"),
            (&["https://a/", "https://b/"], "give -O"),
            (&["https://a/", "https://b/", "-o", "x"], "-o names one file, but there are 2 URLs"),
            (&["https://a/", "https://b/", "-O", "-d", "@-"], "can be sent once"),
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
        let texts: Vec<String> =
            plan_of_list.many.items.iter().map(|(target, _)| target.to_string()).collect();
        assert_eq!(texts, ["https://a/0", "https://a/1", "https://a/2"]);

        std::fs::write(&path, "https://a/1\nftp://a/2\n").unwrap();
        let text = usage(&["--url-file", list, "-O"]);
        assert!(text.contains("line 2: ftp://a/2: expected https:// or http://"), "{text}");
        std::fs::write(&path, "#\n").unwrap();
        assert!(usage(&["--url-file", list, "-O"]).contains("no URLs in"));
    }

    #[test]
    fn what_is_missing_is_said_before_anything_is_sent() {
        let world = |line: &[&str]| refused(line, 1);
        assert!(world(&["https://a/", "--output-dir", "/no/such"]).contains("mkdir -p /no/such"));
        let text = world(&["--url-file", "/no/such", "-O"]);
        assert!(text.contains("/no/such: no such file or directory; --url-file takes"), "{text}");
    }
}
