//! `[[site.route]]`: which paths, and what answers them.

use godwit_layers::files::FolderSettings;
use http::{Method, StatusCode};

use super::context::Context;
use super::reader::Table;
use super::{upstream, values};
use crate::settings::*;

/// What a route can do; each is also the key that says so.
const HANDLERS: [&str; 4] = ["files", "proxy", "redirect", "respond"];
/// What can stand in a redirect's target.
const PLACEHOLDERS: [&str; 3] = ["path", "query", "host"];

/// `None` if it is not clear what the route does.
pub(super) fn read(table: Table<'_>, context: &mut Context<'_>) -> Option<Route> {
    let pattern = "a path such as \"/about\", or \"/api/*\" with everything below";
    let path = table.parsed("path", pattern, values::path_pattern);
    let path_is_wrong = path.is_none() && table.has("path");
    let path = path.unwrap_or_else(|| PathPattern::Prefix("/".to_owned()));
    let method = |text: &str| match Method::from_bytes(text.as_bytes()) {
        Ok(method) if text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') => Ok(method),
        Ok(_) if text.is_ascii() => Err(format!("methods are in capitals: {:?}", text.to_ascii_uppercase())),
        _ => Err("use letters only".to_owned()),
    };
    let expected = "a method such as \"GET\", or a list of them";
    let methods = table.all_parsed("methods", expected, method);
    if table.is_empty_list("methods") {
        let remedy = "leave `methods` out where all methods are meant";
        table.wrong(
            table.place("methods"),
            "methods",
            format_args!("expected {expected}, found an empty list; {remedy}"),
        );
    }
    let methods: Vec<Method> = methods.unwrap_or_default().into_iter().map(|(method, _)| method).collect();
    let strip_prefix = strip_prefix(&table, &path);
    let early_data = table.word("early_data", &values::EARLY_DATA);
    let given: Vec<&str> = HANDLERS.into_iter().filter(|key| table.has(key)).collect();
    match given.as_slice() {
        [_] => {}
        [] => context.problems.problem(
            table.at,
            "[[site.route]] says not what to do; add one of files, proxy, redirect and respond",
        ),
        [first, .., last] => context.problems.problem(
            table.place(last),
            format_args!("a route does one thing, found `{first}` and `{last}`; make two routes of it"),
        ),
    }
    check_companions(&table, &given);
    // All are read even if only one can be: their own mistakes show at once.
    let files = files(&table, context);
    let proxy = upstream::read(&table, context);
    let redirect = redirect(&table);
    let respond = respond(&table);
    table.finish();
    let handler = match given.as_slice() {
        ["files"] => Handler::Files(files?),
        ["proxy"] => Handler::Proxy(Box::new(proxy?)),
        ["redirect"] => redirect?,
        ["respond"] => Handler::Respond(respond?),
        _ => return None,
    };
    (!path_is_wrong).then_some(Route { path, methods, strip_prefix, early_data, handler })
}

/// Keys that mean nothing without a certain other key.
fn check_companions(table: &Table<'_>, given: &[&str]) {
    let companions: [(&str, &[&str]); 6] = [
        ("index", &["files"]),
        ("precompressed", &["files"]),
        ("fallback", &["files"]),
        ("upstream", &["proxy"]),
        ("status", &["redirect"]),
        ("strip_prefix", &["files", "proxy"]),
    ];
    for (key, owners) in companions {
        if table.has(key) && !given.is_empty() && !owners.iter().any(|owner| given.contains(owner)) {
            let owners = owners.join("` or `");
            let hint = if key == "status" && given.contains(&"respond") {
                "write it into respond = { … }".to_owned()
            } else {
                "leave it out".to_owned()
            };
            table.wrong(table.place(key), key, format_args!("it goes with `{owners}` only; {hint}"));
        }
    }
}

fn strip_prefix(table: &Table<'_>, path: &PathPattern) -> Option<String> {
    let prefix = table.parsed("strip_prefix", "a path such as \"/api\"", values::decoded_path)?;
    let prefix = prefix.trim_end_matches('/');
    let of_route = match path {
        PathPattern::Exact(path) => path.as_str(),
        PathPattern::Prefix(path) => path,
    };
    let rest = of_route.strip_prefix(prefix);
    if rest.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        table.wrong(
            table.place("strip_prefix"),
            "strip_prefix",
            format_args!("paths of this route do not begin with {prefix:?}; its path is for {of_route:?}"),
        );
        return None;
    }
    (!prefix.is_empty()).then(|| prefix.to_owned())
}

fn files(table: &Table<'_>, context: &mut Context<'_>) -> Option<FolderSettings> {
    let name = |text: &str| match text {
        "" | "." | ".." => Err("use for example \"index.html\"".to_owned()),
        name if name.contains(['/', '\\']) => {
            Err("leave slashes out: it is looked for in every folder".to_owned())
        }
        name => Ok(name.to_owned()),
    };
    let index = table.all_parsed("index", "the name of a file, or a list of them", name);
    let index = index.map_or_else(
        || vec!["index.html".to_owned()],
        |names| names.into_iter().map(|(name, _)| name).collect(),
    );
    let precompressed = table.boolean("precompressed").unwrap_or(true);
    let fallback = table.parsed("fallback", "a path such as \"/index.html\"", values::path);
    let text = table.text("files", "the path of a folder")?;
    let folder = context.problems.resolve(text.text);
    let shown = folder.display();
    if !folder.is_dir() {
        let problem = if folder.exists() { "it is a file" } else { "there is no such folder" };
        table.wrong(
            text.at,
            "files",
            format_args!("cannot serve {shown}: {problem}; give a folder that exists and can be read"),
        );
        return None;
    }
    if let Err(error) = std::fs::read_dir(&folder) {
        let why = godwit_text::plain_error(&error);
        table.wrong(text.at, "files", format_args!("cannot serve {shown}: {why}; make it readable"));
        return None;
    }
    if let Some(path) = &fallback
        && !folder.join(path.trim_start_matches('/')).is_file()
    {
        table.wrong(
            table.place("fallback"),
            "fallback",
            format_args!("there is no file {path:?} in {shown}; make it, or leave `fallback` out"),
        );
    }
    context.folders.push((folder.clone(), text.at));
    let mut files = FolderSettings::new(folder);
    files.index = index;
    files.precompressed = precompressed;
    files.fallback = fallback;
    Some(files)
}

fn redirect(table: &Table<'_>) -> Option<Handler> {
    const STATUSES: [u64; 5] = [301, 302, 303, 307, 308];
    let expected = "one of the numbers 301, 302, 303, 307 and 308";
    let status = table.number("status", 100, 999).unwrap_or(308);
    let status = if STATUSES.contains(&status) || !table.has("redirect") {
        u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok())
    } else {
        table.wrong(
            table.place("status"),
            "status",
            format_args!("expected {expected}, found {status}; change it"),
        );
        None
    };
    let expected = "a URL such as \"https://www.example.com{path}\", or a path";
    let to = table.parsed("redirect", expected, redirect_target)?;
    Some(Handler::Redirect { to, status: status.unwrap_or(StatusCode::PERMANENT_REDIRECT) })
}

fn redirect_target(text: &str) -> Result<String, String> {
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let after = rest.get(open..).unwrap_or_default();
        let Some((name, tail)) = after.strip_prefix('{').and_then(|after| after.split_once('}')) else {
            return Err("close every { with }; a brace itself is written %7B or %7D".to_owned());
        };
        if !PLACEHOLDERS.contains(&name) {
            return Err(format!("there is no {{{name}}}: use {{path}}, {{query}} and {{host}}"));
        }
        rest = tail;
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("write spaces and other special characters as %20 and so on".to_owned());
    }
    if text.starts_with('/') && !text.starts_with("//") || text.starts_with("{path}") {
        return Ok(text.to_owned());
    }
    let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let host = host.and_then(|rest| rest.split(['/', '?', '#']).next());
    let host = host.ok_or_else(|| "begin it with https://, http:// or a slash".to_owned())?;
    let host = host.split("{path}").next().unwrap_or(host);
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let sample = host.replace("{host}", "example.com");
    match sample.parse::<http::uri::Authority>() {
        Ok(authority) if !sample.contains('@') && !authority.host().is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{host:?} is not a host")),
    }
}

fn respond(table: &Table<'_>) -> Option<Respond> {
    let table = table.table("respond", "respond = { status = 404, body = \"…\" }")?;
    let status = table.number("status", 200, 599).unwrap_or(200);
    let body = table.text("body", "a text").map(|body| body.text.to_owned()).unwrap_or_default();
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        table.wrong(
            table.place("body"),
            "body",
            format_args!("responses with status {status} have no body; leave it out, or use another status"),
        );
    }
    let content_type = table.parsed("type", "a media type such as \"text/plain\"", |text| {
        let (kind, subtype) = text.split_once('/').unwrap_or_default();
        if kind.is_empty() || subtype.is_empty() || text.contains(char::is_control) {
            return Err("it has a slash in its middle".to_owned());
        }
        values::header_value(text)
    });
    table.finish();
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok())?;
    Some(Respond { status, body, content_type })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_somewhere() {
        for text in [
            "https://www.example.com{path}",
            "https://{host}/new",
            "https://{host}:8443{path}?{query}",
            "/new{path}",
            "http://example.com",
            "{path}/",
        ] {
            assert_eq!(redirect_target(text), Ok(text.to_owned()));
        }
        for (text, remedy) in [
            ("https://example.com/{uri}", "no {uri}"),
            ("https://example.com/{path", "close every {"),
            ("www.example.com", "begin it with"),
            ("//evil.example", "begin it with"),
            ("https://user@example.com", "not a host"),
            ("https:///path", "host is missing"),
            ("https://exa mple.com", "special characters"),
            ("ftp://example.com", "begin it with"),
        ] {
            let why = redirect_target(text).unwrap_err();
            assert!(why.contains(remedy), "{text}: {why}");
        }
    }
}
