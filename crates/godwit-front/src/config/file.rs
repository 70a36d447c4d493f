//! A whole configuration file: its top level and the tables that stand there once.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::certificates::Certificate;
use super::checks;
use super::context::{Context, Noted, Scrutiny};
use super::problems::{Findings, Problems};
use super::reader::Table;
use super::site;
use super::values;
use crate::address::{default_address, parse_address};
use crate::settings::*;
use godwit_text::plain_error;

/// Reads a configuration file and checks it and the files that it names. `None` if it cannot be used: then there
/// are problems.
pub fn read(file: &Path, scrutiny: Scrutiny) -> (Option<Settings>, Findings) {
    let text = match godwit_text::read_file(file) {
        Ok(bytes) => String::from_utf8(bytes),
        Err(error) => {
            let problems = Problems::new(file, "");
            problems.problem(
                0,
                format_args!("cannot read the file: {}; give the path of a TOML file", plain_error(&error)),
            );
            return (None, problems.into_findings());
        }
    };
    match text {
        Ok(text) => parse(file, &text, scrutiny),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let read = bytes.get(..good).and_then(|text| std::str::from_utf8(text).ok());
            let problems = Problems::new(file, read.unwrap_or_default());
            problems.problem(good, "expected UTF-8 text, found other bytes; save the file as UTF-8");
            (None, problems.into_findings())
        }
    }
}

/// As [`read`], of a text that stands in `file`.
pub(super) fn parse(file: &Path, text: &str, scrutiny: Scrutiny) -> (Option<Settings>, Findings) {
    let problems = Problems::new(file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        problems.problem(at, format_args!("{}; {}", error.message(), syntax_remedy(error.message())));
    }
    if !errors.is_empty() {
        // What was recovered is incomplete: to find fault with it would mislead.
        return (None, problems.into_findings());
    }
    let settings = top(Table::new("", 0, document.get_ref(), &problems), &problems, scrutiny);
    let findings = problems.into_findings();
    (findings.problems.is_empty().then_some(settings), findings)
}

fn syntax_remedy(message: &str) -> &'static str {
    if message.contains("duplicate") {
        "keep one of them"
    } else if message.contains("string") || message.contains("value") || message.contains("number") {
        "texts, addresses, durations and sizes stand between quotes"
    } else {
        "the format is TOML: key = value, tables in [brackets]"
    }
}

fn top(table: Table<'_>, problems: &Problems, scrutiny: Scrutiny) -> Settings {
    let defaults = Settings::default();
    let address = "an address and port such as \"[::]:443\", or a list of them";
    let listen = table.all_parsed("listen", address, parse_address).unwrap_or_default();
    let redirect_http = table.all_parsed("redirect_http", address, parse_address).unwrap_or_default();
    let metrics_at = table.place("metrics");
    let metrics = table.parsed("metrics", "an address and port such as \"127.0.0.1:9090\"", parse_address);
    check_ports(&table, &listen, &redirect_http, metrics.map(|metrics| (metrics, metrics_at)));
    if table.text("user", "a name").is_some() {
        table.wrong(
            table.place("user"),
            "user",
            "the program does not change its user; start it as that user (with systemd: User=)",
        );
    }
    let shards = table.number("shards", 1, 255).and_then(|number| u8::try_from(number).ok());
    let spin =
        table.parsed("spin", "off, auto, always, or always with a time such as \"always:200us\"", |text| {
            text.parse().map_err(str::to_owned)
        });
    let drain = table.parsed("drain", values::DURATION, values::duration_or_zero);
    let qlog = table.text("qlog", "the path of a folder").map(|text| (problems.resolve(text.text), text.at));
    if let Some((folder, at)) = qlog.as_ref().filter(|(folder, _)| !folder.is_dir()) {
        table.wrong(*at, "qlog", format_args!("there is no folder {}; make it first", folder.display()));
    }
    let compress_certificates = table.boolean("compress_certificates");
    let early_data = table.word("early_data", &values::EARLY_DATA);
    let origin = "an origin such as \"https://www.example.com\", or a list of them";
    let origins = table.all_parsed("origins", origin, values::origin).unwrap_or_default();
    let access_log = table.table("access_log", "[access_log]").map(|table| access_log(table, problems));
    let limits = table.table("limits", "[limits]").map_or(defaults.limits, limits);
    let acme = table.table("acme", "[acme]").map(|table| (acme(&table, problems), table.at, table.finish()));
    let acme = acme.map(|(acme, at, ())| (acme, at));
    if let Some((Acme { challenge: Challenge::Http01, .. }, at)) = &acme
        && redirect_http.is_empty()
    {
        problems.problem(
            *at,
            "challenge \"http-01\" needs a plain HTTP port; write redirect_http = [\"[::]:80\"] at the top",
        );
    }
    let certificates: Vec<Certificate> = table
        .tables("certificate", "[[certificate]]")
        .into_iter()
        .filter_map(|table| Certificate::read(table, problems))
        .collect();
    let has_certificates = table.has("certificate");
    let listening: Vec<SocketAddr> = match listen.is_empty() {
        true => vec![default_address()],
        false => listen.iter().map(|(address, _)| *address).collect(),
    };
    let mut context = Context::new(problems, scrutiny, listening, has_certificates);
    let sites: Vec<Noted> =
        (table.tables("site", "[[site]]").into_iter()).map(|table| site::read(table, &mut context)).collect();
    if !table.has("site") {
        problems.problem(
            0,
            "expected at least one [[site]], found none; add one with hosts and a [[site.route]]",
        );
    }
    table.finish();
    checks::across(&context, &sites, &certificates, acme.as_ref().map(|(acme, at)| (acme, *at)));
    Settings {
        listen: listen.into_iter().map(|(address, _)| address).collect(),
        redirect_http: redirect_http.into_iter().map(|(address, _)| address).collect(),
        metrics,
        shards: shards.and_then(NonZeroU8::new).unwrap_or_else(every_core),
        spin: spin.unwrap_or(defaults.spin),
        drain,
        qlog: qlog.map(|(folder, _)| folder),
        compress_certificates: compress_certificates.unwrap_or(defaults.compress_certificates),
        early_data: early_data.unwrap_or(defaults.early_data),
        origins: origins.into_iter().map(|(origin, _)| origin).collect(),
        access_log: access_log.unwrap_or(defaults.access_log),
        limits,
        acme: acme.map(|(acme, _)| acme),
        certificates: certificates.into_iter().map(|certificate| certificate.files).collect(),
        sites: sites.into_iter().map(|noted| noted.site).collect(),
    }
}

/// Every TCP port once.
fn check_ports(
    table: &Table<'_>,
    listen: &[(SocketAddr, usize)],
    redirect_http: &[(SocketAddr, usize)],
    metrics: Option<(SocketAddr, usize)>,
) {
    let of = |key, list: &[(SocketAddr, usize)]| {
        list.iter().map(move |(address, at)| (key, *address, *at)).collect::<Vec<_>>()
    };
    let metrics: Vec<_> = metrics.into_iter().collect();
    let all = [of("listen", listen), of("redirect_http", redirect_http), of("metrics", &metrics)].concat();
    for (index, (key, address, at)) in all.iter().enumerate() {
        let same = |(other_key, other, _): &&(&str, SocketAddr, usize)| {
            // Whoever leaves the port open does not ask for two of them by that.
            (key == other_key && address == other) || clash(*address, *other)
        };
        if let Some((other_key, other, _)) = all.iter().take(index).find(same) {
            table.wrong(
                *at,
                key,
                format_args!("{address} is taken by `{other_key}` ({other}) already; choose another port"),
            );
        }
    }
}

fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    // An IPv4 address may be written as an IPv6 address (RFC 4291 section 2.5.5.2).
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (one, other) = (plain(one), plain(other));
    let every = |address: SocketAddr| address.ip().is_unspecified();
    // [::] is every IPv4 address as well.
    let covers = |wide: SocketAddr, narrow: SocketAddr| every(wide) && (wide.is_ipv6() || narrow.is_ipv4());
    let meet = one.ip() == other.ip() || covers(one, other) || covers(other, one);
    one.port() != 0 && one.port() == other.port() && meet
}

fn access_log(table: Table<'_>, problems: &Problems) -> AccessLog {
    let file = table.text("file", "the path of a file, or \"-\" for the standard output");
    let target = match file {
        None => LogTarget::Stdout,
        Some(text) if text.text == "-" => LogTarget::Stdout,
        Some(text) => {
            let path = problems.resolve(text.text);
            check_log_file(&table, &path, text.at);
            LogTarget::File(path)
        }
    };
    let format = table.word(
        "format",
        &[("json", LogFormat::Json), ("combined", LogFormat::Combined), ("terminal", LogFormat::Terminal)],
    );
    let addresses =
        [("full", ClientAddress::Full), ("prefix", ClientAddress::Prefix), ("none", ClientAddress::None)];
    let client_address = table.word("client_address", &addresses).unwrap_or_default();
    table.finish();
    AccessLog { target, format: format.unwrap_or(LogFormat::Json), client_address }
}

fn check_log_file(table: &Table<'_>, path: &Path, at: usize) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let shown = path.display();
    if path.is_dir() {
        table.wrong(at, "file", format_args!("{shown} is a folder; add the name of a file"));
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        table.wrong(at, "file", format_args!("there is no folder {folder}; make it first, or log elsewhere"));
    }
}

fn limits(table: Table<'_>) -> Limits {
    let mut limits = Limits::default();
    let count = |key| table.number(key, 1, 10_000_000).and_then(|number| usize::try_from(number).ok());
    limits.connections = count("connections").unwrap_or(limits.connections);
    limits.connections_per_address =
        count("connections_per_address").unwrap_or(limits.connections_per_address);
    limits.idle_connections = count("idle_connections").unwrap_or((limits.connections / 5).max(16));
    if let Some(number) = table.number("requests_per_connection", 1, 65_535) {
        limits.requests_per_connection = u32::try_from(number).unwrap_or(u32::MAX);
    }
    let abandoned =
        |key, from| table.number(key, from, 1_000_000).and_then(|number| u32::try_from(number).ok());
    limits.abandoned_requests = abandoned("abandoned_requests", 1).unwrap_or(limits.abandoned_requests);
    limits.abandoned_per_second = abandoned("abandoned_per_second", 0).unwrap_or(limits.abandoned_per_second);
    let header_size =
        |bytes| match u32::try_from(bytes).ok().filter(|bytes| (8192..=16 << 20).contains(bytes)) {
            Some(bytes) => Ok(bytes),
            None => Err("use 8KiB to 16MiB".to_owned()),
        };
    let size = |text: &str| values::size(text).and_then(header_size);
    limits.header_size =
        table.parsed_or_number("header_size", values::SIZE, size, header_size).unwrap_or(limits.header_size);
    let body_size = |bytes| match bytes {
        0 => Err("use more than nothing, or \"none\" for no limit".to_owned()),
        bytes => Ok(Some(bytes)),
    };
    let size = |text: &str| if text == "none" { Ok(None) } else { values::size(text).and_then(body_size) };
    let expected = "a size such as \"100MiB\", or \"none\"";
    limits.body_size = table.parsed_or_number("body_size", expected, size, body_size).flatten();
    let duration = |key, default| table.parsed(key, values::DURATION, values::duration).unwrap_or(default);
    limits.header_timeout = duration("header_timeout", limits.header_timeout);
    limits.idle_timeout = duration("idle_timeout", limits.idle_timeout);
    limits.send_timeout = duration("send_timeout", limits.send_timeout);
    let rate = |text: &str| if text == "none" { Ok(0) } else { values::rate(text) };
    let expected = "a rate such as \"256B/s\", or \"none\"";
    limits.minimum_rate = table.parsed("minimum_rate", expected, rate).unwrap_or(limits.minimum_rate);
    if limits.connections_per_address > limits.connections {
        let at = table.place("connections_per_address");
        if table.has("connections_per_address") {
            table.wrong(
                at,
                "connections_per_address",
                format_args!(
                    "{} is more than `connections` in all; lower it",
                    limits.connections_per_address
                ),
            );
        }
        limits.connections_per_address = limits.connections;
    }
    table.finish();
    limits
}

fn acme(table: &Table<'_>, problems: &Problems) -> Acme {
    const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
    const PRODUCTION: &str = "https://acme-v02.api.letsencrypt.org/directory";
    let directory = |text: &str| match text {
        "letsencrypt" => Ok(PRODUCTION.to_owned()),
        "letsencrypt-staging" => Ok(STAGING.to_owned()),
        url if url.starts_with("http://") => Err("ACME needs HTTPS: begin it with https://".to_owned()),
        url => match url.parse::<http::Uri>() {
            Ok(uri) if uri.scheme_str() == Some("https") && uri.host().is_some() => Ok(url.to_owned()),
            _ => Err("give the URL from the authority's documentation".to_owned()),
        },
    };
    let expected = "\"letsencrypt\", \"letsencrypt-staging\" or the https URL of a directory";
    let directory = table.parsed("directory", expected, directory).unwrap_or_else(|| PRODUCTION.to_owned());
    let address = |text: &str| {
        let (name, host) = text.split_once('@').unwrap_or_default();
        let good = !name.is_empty() && !host.is_empty() && !text.contains([' ', ',', ':']);
        good.then(|| text.to_owned()).ok_or_else(|| "write it like admin@example.com".to_owned())
    };
    let email = table.parsed("email", "a mail address", address);
    if !table.has("email") {
        problems.problem(table.at, "[acme] needs `email`, where the authority can reach you; add it");
    }
    let accept_terms = table.boolean("accept_terms").unwrap_or(false);
    if !accept_terms {
        problems.problem(
            table.place("accept_terms"),
            "[acme] needs accept_terms = true: read the authority's terms of service, and add it if you agree",
        );
    }
    let path = |text: super::reader::Text<'_>| -> (PathBuf, usize) { (problems.resolve(text.text), text.at) };
    let folder = table.text("folder", "the path of a folder").map(path);
    if let Some((folder, at)) = folder.as_ref().filter(|(folder, _)| folder.exists() && !folder.is_dir()) {
        table.wrong(*at, "folder", format_args!("{} is a file; give a folder", folder.display()));
    }
    let challenge =
        table.word("challenge", &[("tls-alpn-01", Challenge::TlsAlpn01), ("http-01", Challenge::Http01)]);
    let ca = table.text("ca", "the path of a PEM file").map(path);
    if let Some((ca, at)) = &ca {
        super::certificates::check_roots(table, "ca", ca, *at);
    }
    Acme {
        directory,
        email,
        accept_terms,
        folder: folder.map(|(folder, _)| folder),
        challenge: challenge.unwrap_or_default(),
        ca: ca.map(|(ca, _)| ca),
    }
}
