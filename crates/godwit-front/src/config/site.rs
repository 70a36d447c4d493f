//! `[[site]]`: host names, certificate, advertisement, header rules and routes.

use std::num::NonZeroU16;

use super::context::{Context, Noted};
use super::reader::{Table, one_of, word};
use super::route;
use super::values;
use crate::settings::*;

const HOST: &str = "a host name such as \"example.com\", \"*.example.com\" or \"*\"";

pub(super) fn read(table: Table<'_>, context: &mut Context<'_>) -> Noted {
    let problems = context.problems;
    let hosts = table.all_parsed("hosts", HOST, values::host).unwrap_or_default();
    if !table.has("hosts") {
        problems
            .problem(table.at, "[[site]] needs `hosts`, a list of names (or [\"*\"] for every name); add it");
    } else if table.is_empty_list("hosts") {
        table.wrong(
            table.place("hosts"),
            "hosts",
            format_args!("expected {HOST}, found an empty list; add one"),
        );
    }
    let words = [("files", SiteTls::Files), ("acme", SiteTls::Acme), ("local", SiteTls::Local)];
    let default_tls = if context.has_certificates { SiteTls::Files } else { SiteTls::Local };
    let tls = table.word("tls", &words).unwrap_or(default_tls);
    let advertise_port = table.number("advertise_port", 1, 65_535);
    let advertise_port = advertise_port.and_then(|port| u16::try_from(port).ok()).and_then(NonZeroU16::new);
    let defaults = Site::catch_all(Handler::Pages(&[]));
    let mut site = Site {
        hosts: hosts.iter().map(|(host, _)| host.clone()).collect(),
        tls,
        advertise: advertise(&table),
        advertise_port,
        advertise_age: table
            .parsed("advertise_age", values::DURATION, values::duration)
            .unwrap_or(defaults.advertise_age),
        server_timing: table.boolean("server_timing").unwrap_or(true),
        compress: compress(&table, defaults.compress),
        compress_with_credentials: table.boolean("compress_with_credentials").unwrap_or(false),
        response_headers: header_rules(&table, "response_headers"),
        request_headers: header_rules(&table, "request_headers"),
        routes: Vec::new(),
    };
    let mut places = Vec::new();
    for table in table.tables("route", "[[site.route]]") {
        let at = if table.has("path") { table.place("path") } else { table.at };
        if let Some(route) = route::read(table, context) {
            site.routes.push(route);
            places.push(at);
        }
    }
    if !table.has("route") {
        problems.problem(
            table.at,
            "[[site]] needs at least one [[site.route]]; add one with files, proxy, redirect or respond",
        );
    }
    let tls_at = table.place("tls");
    table.finish();
    Noted { site, hosts, routes: places, tls_at }
}

fn advertise(table: &Table<'_>) -> Advertise {
    match table.boolean_or_else("advertise") {
        Some(true) => Advertise::All,
        Some(false) => Advertise::Nobody,
        None => {
            let expected = "true, false or a share of the users such as \"5%\"";
            let of_number = |number| Err(format!("write it as \"{number}%\""));
            table
                .parsed_or_number("advertise", expected, values::percent, of_number)
                .unwrap_or(Advertise::All)
        }
    }
}

fn compress(table: &Table<'_>, default: Vec<Coding>) -> Vec<Coding> {
    const WORDS: [(&str, Coding); 3] =
        [("zstd", Coding::Zstd), ("br", Coding::Brotli), ("gzip", Coding::Gzip)];
    match table.boolean_or_else("compress") {
        Some(true) => return default,
        Some(false) => return Vec::new(),
        None => {}
    }
    let expected = format!("{}, a list of them, or false", one_of(WORDS.iter().map(|(word, _)| *word)));
    let parse = |text: &str| match text {
        "brotli" => Err("did you mean \"br\"?".to_owned()),
        "deflate" => Err("it is not supported: clients disagree about its format; use \"gzip\"".to_owned()),
        text => word(text, &WORDS),
    };
    let Some(codings) = table.all_parsed("compress", &expected, parse) else { return default };
    for (index, (coding, at)) in codings.iter().enumerate() {
        if codings.iter().take(index).any(|(other, _)| other == coding) {
            table.wrong(*at, "compress", "it is there twice; leave one out");
        }
    }
    codings.into_iter().map(|(coding, _)| coding).collect()
}

fn header_rules(table: &Table<'_>, key: &'static str) -> HeaderRules {
    let mut rules = HeaderRules::default();
    let Some(table) = table.table(key, key) else { return rules };
    for (change, into) in [("set", &mut rules.set), ("add", &mut rules.add)] {
        let Some(changes) = table.table(change, change) else { continue };
        for (name, value) in changes.entries("a text: the header's value") {
            let parsed_name = values::header_name(name.text).map_err(|why| {
                changes.wrong(name.at, name.text, format_args!("no rule can {change} this header; {why}"));
            });
            let parsed_value = values::header_value(value.text).map_err(|why| {
                changes.wrong(value.at, name.text, format_args!("this cannot be a header's value; {why}"));
            });
            if let (Ok(name), Ok(value)) = (parsed_name, parsed_value) {
                into.push((name, value));
            }
        }
    }
    let expected = "the name of a header, or a list of them";
    let removed = table.all_parsed("remove", expected, values::header_name).unwrap_or_default();
    rules.remove = removed.into_iter().map(|(name, _)| name).collect();
    table.finish();
    rules
}
