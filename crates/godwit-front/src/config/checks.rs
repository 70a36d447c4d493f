//! Checks that look at several tables at once: clashes, certificates that do not cover, redirects in circles, private
//! files that would be served, names that cannot be resolved.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::certificates::Certificate;
use super::context::{Context, Noted, Scrutiny};
use super::problems::Problems;
use crate::path::{encode, normal};
use crate::settings::*;

/// How long all names of upstreams together may take to be resolved.
const RESOLVING: Duration = Duration::from_secs(3);
/// How far redirects are followed.
const HOPS: usize = 10;

pub(super) fn across(
    context: &Context<'_>,
    sites: &[Noted],
    certificates: &[Certificate],
    acme: Option<(&Acme, usize)>,
) {
    let problems = context.problems;
    hosts_once(problems, sites);
    sites.iter().for_each(|noted| routes_once(problems, noted));
    certificates_cover(context, sites, certificates);
    acme_used(problems, sites, acme);
    nothing_private(context, certificates, acme);
    redirects_end(context, sites);
    names_resolve(context);
}

fn hosts_once(problems: &Problems, sites: &[Noted]) {
    let mut seen: BTreeMap<&HostPattern, usize> = BTreeMap::new();
    for (host, at) in sites.iter().flat_map(|noted| &noted.hosts) {
        match seen.get(host) {
            Some(first) => {
                let line = problems.line(*first);
                problems.problem(
                    *at,
                    format_args!(
                        "the host {host} has its site in line {line} already; leave one of them out"
                    ),
                );
            }
            None => drop(seen.insert(host, *at)),
        }
    }
}

fn routes_once(problems: &Problems, noted: &Noted) {
    let routes: Vec<(&Route, &usize)> = noted.site.routes.iter().zip(&noted.routes).collect();
    for (index, (route, at)) in routes.iter().enumerate() {
        let meet = |other: &Route| {
            route.methods.is_empty()
                || other.methods.is_empty()
                || route.methods.iter().any(|method| other.methods.contains(method))
        };
        let same = |(other, _): &&(&Route, &usize)| other.path == route.path && meet(other);
        if let Some((_, first)) = routes.iter().take(index).find(same) {
            let path = match &route.path {
                PathPattern::Exact(path) => path.clone(),
                PathPattern::Prefix(path) => format!("{path}*"),
            };
            let line = problems.line(**first);
            problems.problem(
                **at,
                format_args!(
                    "the path {path} has its route in line {line} already; leave one out, or tell them apart \
                     by `methods`"
                ),
            );
        }
    }
}

fn certificates_cover(context: &Context<'_>, sites: &[Noted], certificates: &[Certificate]) {
    let problems = context.problems;
    for noted in sites.iter().filter(|noted| noted.site.tls == SiteTls::Files) {
        if !context.has_certificates {
            problems.problem(
                noted.tls_at,
                "tls = \"files\" needs a [[certificate]], found none; add one with cert and key",
            );
        }
        // Certificates that could not be read may be the ones that cover: they are to be mended first.
        if certificates.is_empty() {
            continue;
        }
        for (host, at) in &noted.hosts {
            if !certificates.iter().any(|certificate| certificate.covers(host)) {
                let names: Vec<&str> =
                    certificates.iter().flat_map(|one| &one.names).take(5).map(String::as_str).collect();
                problems.problem(
                    *at,
                    format_args!(
                        "no [[certificate]] is for {host} (they are for {}); add one, or set tls = \"acme\" or \
                         \"local\"",
                        names.join(", ")
                    ),
                );
            }
        }
    }
}

fn acme_used(problems: &Problems, sites: &[Noted], acme: Option<(&Acme, usize)>) {
    let mut used = false;
    for noted in sites.iter().filter(|noted| noted.site.tls == SiteTls::Acme) {
        used = true;
        if acme.is_none() {
            problems.problem(
                noted.tls_at,
                "tls = \"acme\" needs a table [acme], found none; add it with email and accept_terms",
            );
        }
        for (host, at) in &noted.hosts {
            match host {
                HostPattern::Exact(name) if is_address(name) => problems.problem(
                    *at,
                    format_args!("ACME gives certificates for names, not for the address {name}; use a name"),
                ),
                HostPattern::Exact(_) => {}
                HostPattern::Any => problems.problem(
                    *at,
                    "ACME needs to know the names, and \"*\" is none; list them, or set tls = \"local\"",
                ),
                HostPattern::Wildcard(_) => problems.problem(
                    *at,
                    format_args!("ACME gives {host} by DNS only, which is not supported; list the names"),
                ),
            }
        }
    }
    if let (Some((_, at)), false) = (acme, used) {
        problems.warning(at, "no site uses [acme]; set tls = \"acme\" at the sites that should");
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<std::net::IpAddr>().is_ok()
}

/// Private keys must not lie where everybody can fetch them.
fn nothing_private(context: &Context<'_>, certificates: &[Certificate], acme: Option<(&Acme, usize)>) {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let keys = certificates.iter().map(|certificate| ("the private key", real(&certificate.files.key)));
    let account =
        acme.and_then(|(acme, _)| acme.folder.as_deref()).map(|folder| ("the ACME keys", real(folder)));
    let private: Vec<(&str, PathBuf)> = keys.chain(account).collect();
    for (folder, at) in &context.folders {
        let folder = real(folder);
        if let Some((what, path)) = private.iter().find(|(_, path)| path.starts_with(&folder)) {
            let path = path.display();
            context.problems.problem(
                *at,
                format_args!(
                    "everybody could fetch {what} {path} from this folder; move one of them elsewhere"
                ),
            );
        }
    }
}

/// A request as far as redirects are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    host: String,
    /// As it is compared with those of routes.
    path: String,
}

/// Follows every redirect from a path that it is for, as a browser would.
fn redirects_end(context: &Context<'_>, sites: &[Noted]) {
    for noted in sites {
        for (route, at) in noted.site.routes.iter().zip(&noted.routes) {
            let Handler::Redirect { to, .. } = &route.handler else { continue };
            let path = match &route.path {
                PathPattern::Exact(path) => path.clone(),
                PathPattern::Prefix(path) => format!("{path}some/page"),
            };
            let host = noted.hosts.first().map_or_else(String::new, |(host, _)| sample_of(host));
            if goes_in_circles(context, sites, Place { host, path }) {
                context.problems.problem(
                    *at,
                    format_args!(
                        "the redirect to {to:?} comes back to itself; send it to another host or path"
                    ),
                );
            }
        }
    }
}

fn sample_of(host: &HostPattern) -> String {
    match host {
        HostPattern::Any => "any.invalid".to_owned(),
        HostPattern::Exact(name) if name.contains(':') => format!("[{name}]"),
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("any.{name}"),
    }
}

fn goes_in_circles(context: &Context<'_>, sites: &[Noted], from: Place) -> bool {
    let start = from.clone();
    let mut place = from;
    let mut targets: Vec<String> = Vec::new();
    for _ in 0..HOPS {
        let Some(to) = redirect_at(sites, &place) else { return false };
        let Some(next) = target_of(context, to, &place) else { return false };
        // The same rule again and again, as /a to /a/a, is a circle even if the path grows.
        if next == start || next == place || targets.iter().filter(|known| *known == to).count() > 2 {
            return true;
        }
        targets.push(to.to_owned());
        place = next;
    }
    true
}

/// Where the server would send a request for a place.
fn redirect_at<'a>(sites: &'a [Noted], place: &Place) -> Option<&'a str> {
    let rank = |host: &HostPattern| match host {
        HostPattern::Exact(name) if name == place.host.trim_matches(['[', ']']) => Some(2),
        HostPattern::Wildcard(name) if place.host.split_once('.').is_some_and(|(_, rest)| rest == name) => {
            Some(1)
        }
        HostPattern::Any => Some(0),
        _ => None,
    };
    let best = |noted: &&Noted| noted.hosts.iter().filter_map(|(host, _)| rank(host)).max();
    let site = sites.iter().filter(|noted| best(noted).is_some()).max_by_key(best)?;
    let length = |route: &&Route| match &route.path {
        PathPattern::Exact(path) if *path == place.path => Some(usize::MAX),
        PathPattern::Prefix(path) if place.path.starts_with(path.as_str()) => Some(path.len()),
        _ => None,
    };
    let get = |route: &&Route| route.methods.is_empty() || route.methods.contains(&http::Method::GET);
    let routes = site.site.routes.iter().filter(|route| length(route).is_some() && get(route));
    match &routes.max_by_key(length)?.handler {
        Handler::Redirect { to, .. } => Some(to),
        _ => None,
    }
}

/// `None` if the target is outside of this server.
fn target_of(context: &Context<'_>, to: &str, from: &Place) -> Option<Place> {
    let filled =
        to.replace("{host}", &from.host).replace("{path}", &encode(&from.path)).replace("{query}", "");
    let plain = |path: &str| normal(path.split(['?', '#']).next().unwrap_or("/")).path.into_owned();
    if filled.starts_with('/') {
        return Some(Place { host: from.host.clone(), path: plain(&filled) });
    }
    let rest = filled.strip_prefix("https://")?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let authority: http::uri::Authority = authority.parse().ok()?;
    let port = authority.port_u16().unwrap_or(443);
    let own = context.listening.iter().any(|address| address.port() == port);
    own.then(|| Place { host: authority.host().to_ascii_lowercase(), path: plain(path) })
}

/// Looks all names of upstreams up, at the same time.
fn names_resolve(context: &Context<'_>) {
    if context.scrutiny == Scrutiny::Text {
        return;
    }
    let (sender, answers) = mpsc::channel();
    let mut pending = 0;
    for (index, (name, port, _)) in context.upstream_names.iter().enumerate() {
        let (sender, name, port) = (sender.clone(), name.clone(), *port);
        let look_up = move || {
            let found = (name.as_str(), port).to_socket_addrs().is_ok_and(|mut found| found.next().is_some());
            let _ = sender.send((index, found));
        };
        if std::thread::Builder::new().name("resolver".to_owned()).spawn(look_up).is_ok() {
            pending += 1;
        }
    }
    let mut silent = vec![true; context.upstream_names.len()];
    let end = godwit_text::instant_now() + RESOLVING;
    while pending > 0 {
        let left = end.saturating_duration_since(godwit_text::instant_now());
        let Ok((index, found)) = answers.recv_timeout(left) else { break };
        pending -= 1;
        if let Some(silent) = silent.get_mut(index) {
            *silent = false;
        }
        if !found && let Some((name, _, at)) = context.upstream_names.get(index) {
            let message =
                format!("the upstream's name {name} cannot be resolved; correct it, or give an address");
            match context.scrutiny {
                Scrutiny::Check => context.problems.problem(*at, message),
                Scrutiny::Start | Scrutiny::Text => context.problems.warning(*at, message),
            }
        }
    }
    for ((name, _, at), _) in context.upstream_names.iter().zip(silent).filter(|(_, silent)| *silent) {
        context
            .problems
            .warning(*at, format_args!("the upstream's name {name} could not be looked up in time"));
    }
}
