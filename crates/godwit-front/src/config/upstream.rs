//! `proxy` and `[site.route.upstream]`: upstream servers and how they are used.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{HeaderValue, StatusCode, Uri};

use super::certificates::check_roots;
use super::context::{Context, file_of};
use super::reader::Table;
use super::values;
use crate::settings::*;

const URL: &str = "a URL such as \"http://127.0.0.1:8080\" (or https://, h2c://), or a list of them";

pub(super) fn read(route: &Table<'_>, context: &mut Context<'_>) -> Option<Proxy> {
    let urls = route.all_parsed("proxy", URL, url);
    let mut upstreams: Vec<String> = Vec::new();
    for (upstream, at) in urls.iter().flatten() {
        let Upstream { url, host, port, .. } = upstream;
        if upstreams.contains(url) {
            route.wrong(*at, "proxy", format_args!("{url} is there twice; leave one out"));
        }
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => check_loop(route, context, ip, *port, *at),
            Err(_) if host == "localhost" => {
                check_loop(route, context, IpAddr::from([127, 0, 0, 1]), *port, *at);
            }
            Err(_) => context.upstream_names.push((host.clone(), *port, *at)),
        }
        upstreams.push(url.clone());
    }
    if route.is_empty_list("proxy") {
        route.wrong(
            route.place("proxy"),
            "proxy",
            format_args!("expected {URL}, found an empty list; add one"),
        );
    }
    let encrypted = urls.iter().flatten().any(|(upstream, _)| upstream.encrypted);
    let mut proxy = Proxy::to(upstreams);
    if let Some(table) = route.table("upstream", "[site.route.upstream]") {
        settings(&table, context, encrypted, &mut proxy);
        table.finish();
    }
    (!proxy.upstreams.is_empty()).then_some(proxy)
}

/// Checks the URL of an upstream, and returns it in its plain form.
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn upstream_url(text: &str) -> Result<String, String> {
    url(text).map(|upstream| upstream.url)
}

struct Upstream {
    url: String,
    host: String,
    port: u16,
    encrypted: bool,
}

fn url(text: &str) -> Result<Upstream, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("begin it with a scheme: \"http://{text}\""));
    };
    let (encrypted, default_port) = match scheme {
        "http" | "h2c" => (false, 80),
        "https" => (true, 443),
        "h3" | "quic" => return Err("upstreams are reached over TCP: use https://".to_owned()),
        "ws" | "wss" => return Err("WebSockets go through http:// and https:// upstreams".to_owned()),
        "unix" | "http+unix" => {
            return Err("Unix sockets are not supported: have the server listen on 127.0.0.1".to_owned());
        }
        other => return Err(format!("{other:?} is no scheme for upstreams: use http, https or h2c")),
    };
    if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
        return Err("leave the user name and password out; set an authorization header instead".to_owned());
    }
    let uri: Uri =
        format!("http://{rest}").parse().map_err(|_| "write it like http://host:port".to_owned())?;
    let authority = uri.authority().ok_or_else(|| "the host is missing".to_owned())?;
    if authority.host().is_empty() {
        return Err("the host is missing".to_owned());
    }
    if uri.path() != "/" || uri.query().is_some() || rest.contains('#') {
        let bare = format!("{scheme}://{authority}");
        return Err(format!("leave the path out: {bare:?}; see strip_prefix for paths"));
    }
    let has_colon = authority.as_str().rsplit(']').next().is_some_and(|end| end.contains(':'));
    let port = match authority.port_u16() {
        Some(0) => return Err("port 0 is no port to connect to".to_owned()),
        Some(port) => port,
        None if has_colon => return Err("a port is a number from 1 to 65535".to_owned()),
        None => default_port,
    };
    let host = authority.host().to_ascii_lowercase();
    if !host.starts_with('[') {
        values::host_name(&host)?;
    }
    Ok(Upstream { url: format!("{scheme}://{authority}"), host, port, encrypted })
}

/// An upstream that is this server itself would answer every request with another one.
fn check_loop(route: &Table<'_>, context: &Context<'_>, ip: IpAddr, port: u16, at: usize) {
    let is_own = |own: &&SocketAddr| {
        own.port() == port && (own.ip() == ip || own.ip().is_unspecified() && ip.is_loopback())
    };
    if let Some(own) = context.listening.iter().find(is_own) {
        route.wrong(
            at,
            "proxy",
            format_args!(
                "this is the server itself, which listens at {own}; give the address of another server"
            ),
        );
    }
}

fn settings(table: &Table<'_>, context: &Context<'_>, encrypted: bool, proxy: &mut Proxy) {
    let duration =
        |key, default: Duration| table.parsed(key, values::DURATION, values::duration).unwrap_or(default);
    proxy.connect_timeout = duration("connect_timeout", proxy.connect_timeout);
    proxy.response_timeout = duration("response_timeout", proxy.response_timeout);
    let limit = |text: &str| if text == "none" { Ok(None) } else { values::duration(text).map(Some) };
    let expected = "a duration such as \"5m\", or \"none\"";
    proxy.body_timeout = table.parsed("body_timeout", expected, limit).unwrap_or(proxy.body_timeout);
    proxy.idle_timeout = duration("idle_timeout", proxy.idle_timeout);
    if let Some(most) = table.number("max_idle", 0, 100_000) {
        proxy.max_idle = usize::try_from(most).unwrap_or(proxy.max_idle);
    }
    let most = table.number("max_connections", 1, 1_000_000);
    proxy.max_connections = most.and_then(|most| usize::try_from(most).ok());
    if let Some(share) = table.number("network_share", 1, 100) {
        proxy.network_share = u8::try_from(share).unwrap_or(proxy.network_share);
    }
    if let Some(retries) = table.number("retries", 0, 10) {
        proxy.retries = u32::try_from(retries).unwrap_or(proxy.retries);
    }
    let balance = [("round-robin", Balance::RoundRobin), ("least-requests", Balance::LeastRequests)];
    proxy.balance = table.word("balance", &balance).unwrap_or(proxy.balance);
    let host = |text: &str| match text {
        "keep" => Ok(UpstreamHost::Keep),
        "upstream" => Ok(UpstreamHost::Upstream),
        name => match name.parse::<http::uri::Authority>() {
            Ok(_) if HeaderValue::from_str(name).is_ok() && !name.contains('@') => {
                Ok(UpstreamHost::Name(name.to_owned()))
            }
            _ => Err("a name has no spaces, slashes or @".to_owned()),
        },
    };
    proxy.host = table.parsed("host", "\"keep\", \"upstream\" or a name", host).unwrap_or(UpstreamHost::Keep);
    proxy.forwarded = table.boolean("forwarded").unwrap_or(true);
    let expected = "a network such as \"10.0.0.0/8\", or a list of them";
    let trusted = table.all_parsed("trust_forwarded", expected, values::network).unwrap_or_default();
    proxy.trust_forwarded = trusted.into_iter().map(|(network, _)| network).collect();
    proxy.tls = tls(table, context, encrypted);
    proxy.health = table.table("health", "health = { path = \"/healthz\" }").and_then(health);
}

fn tls(table: &Table<'_>, context: &Context<'_>, encrypted: bool) -> UpstreamTls {
    let ca = table.text("ca", "the path of a PEM file").map(|text| file_of(context, text));
    if let Some((ca, at)) = &ca {
        check_roots(table, "ca", ca, *at);
    }
    let name = table.parsed("tls_name", "a host name", values::host_name);
    let insecure = table.boolean("insecure").unwrap_or(false);
    if insecure && ca.is_some() {
        let at = table.place("insecure");
        table.wrong(at, "insecure", "with it `ca` means nothing; leave one of them out");
    }
    for key in ["ca", "tls_name", "insecure"] {
        if table.has(key) && !encrypted {
            table.wrong(
                table.place(key),
                key,
                "no upstream of this route has TLS; use https://, or leave it out",
            );
        }
    }
    UpstreamTls { ca: ca.map(|(ca, _)| ca), name, insecure }
}

fn health(table: Table<'_>) -> Option<Health> {
    let path = |text: &str| match text.parse::<http::uri::PathAndQuery>() {
        Ok(_) if text.starts_with('/') => Ok(text.to_owned()),
        _ => Err("begin it with a slash, and write special characters as %20 and so on".to_owned()),
    };
    let path = table.parsed("path", "a path such as \"/healthz\"", path);
    if !table.has("path") {
        table.wrong(table.at, "health", "it needs `path`, which to ask for; add it");
    }
    let duration = |key, default| {
        table.parsed(key, values::DURATION, values::duration).unwrap_or(Duration::from_secs(default))
    };
    let (interval, timeout) = (duration("interval", 5), duration("timeout", 2));
    if timeout > interval {
        let key = if table.has("timeout") { "timeout" } else { "interval" };
        table.wrong(table.place(key), key, "checks would overlap; make `timeout` shorter than `interval`");
    }
    let count = |key, default| {
        table.number(key, 1, 1000).and_then(|number| u32::try_from(number).ok()).unwrap_or(default)
    };
    let (healthy, unhealthy) = (count("healthy", 2), count("unhealthy", 3));
    let status = table.number("status", 200, 599).unwrap_or(200);
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    table.finish();
    Some(Health { path: path?, interval, timeout, healthy, unhealthy, status: status? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_host_and_port_only() {
        for (text, host, port) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://127.0.0.1:8080/", "127.0.0.1", 8080),
            ("https://[::1]", "[::1]", 443),
            ("h2c://App.Example", "app.example", 80),
        ] {
            let upstream = url(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!((upstream.host.as_str(), upstream.port), (host, port), "{text}");
        }
        for (text, remedy) in [
            ("127.0.0.1:8080", "\"http://127.0.0.1:8080\""),
            ("ftp://a", "no scheme"),
            ("http://a:b@c", "user name"),
            ("http://a/b", "leave the path out: \"http://a\""),
            ("http://a?b", "leave the path out"),
            ("http://a:0", "port 0"),
            ("http://a:99999", "1 to 65535"),
            ("http://", "like http://host:port"),
            ("http://a b", "like http://host:port"),
            ("unix:///run/a", "127.0.0.1"),
            ("ws://a", "http://"),
            ("h3://a", "https://"),
        ] {
            let why = url(text).err().unwrap_or_default();
            assert!(why.contains(remedy), "{text}: {why}");
        }
    }
}
