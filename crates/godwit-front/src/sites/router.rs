//! Which site a host belongs to, and which route of it a path and a method.
//!
//! A host named exactly comes before a wildcard, a wildcard before `*`. Of the routes, that with the longest path
//! counts; of two as long, the exact one, then the one with methods. A route whose methods do not fit is passed
//! over for a shorter one.

use std::collections::HashMap;

use http::Method;

use super::host::Host;
use crate::settings::{HostPattern, PathPattern};

/// How a configuration speaks of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By its name, or by a star and what follows its first label.
    Named,
    /// As one of all.
    CaughtAll,
    /// Not at all.
    Unknown,
}

/// From hosts to the numbers of their sites.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    exact: HashMap<String, usize>,
    below: HashMap<String, usize>,
    any: Option<usize>,
}

impl Hosts {
    /// `patterns` of the sites, in their order. Where two sites claim the same, the first has it.
    pub(super) fn new<'a>(sites: impl Iterator<Item = &'a [HostPattern]>) -> Hosts {
        let mut hosts = Hosts::default();
        for (number, patterns) in sites.enumerate() {
            for pattern in patterns {
                match pattern {
                    HostPattern::Any => drop(hosts.any.get_or_insert(number)),
                    HostPattern::Exact(name) => drop(hosts.exact.entry(form(name)).or_insert(number)),
                    HostPattern::Wildcard(name) => drop(hosts.below.entry(form(name)).or_insert(number)),
                }
            }
        }
        hosts
    }

    pub(super) fn site(&self, host: Option<&Host>) -> Option<usize> {
        host.and_then(|host| self.named(host)).or(self.any)
    }

    /// How a host is configured.
    pub(super) fn naming(&self, host: &Host) -> Naming {
        match (self.named(host), self.any) {
            (Some(_), _) => Naming::Named,
            (None, Some(_)) => Naming::CaughtAll,
            (None, None) => Naming::Unknown,
        }
    }

    fn named(&self, host: &Host) -> Option<usize> {
        let host = host.as_str();
        let wildcard = || self.below.get(host.split_once('.')?.1);
        self.exact.get(host).or_else(wildcard).copied()
    }
}

/// The configuration may write an IPv6 address with or without brackets.
fn form(name: &str) -> String {
    let bare = || name.parse().ok().map(|address: std::net::Ipv6Addr| address.to_string());
    Host::parse(name).map(|host| host.as_str().to_owned()).or_else(bare).unwrap_or_else(|| name.to_owned())
}

/// What a route is for.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) path: PathPattern,
    /// Empty: every method.
    pub(super) methods: Vec<Method>,
}

impl Rule {
    fn takes_path(&self, path: &str) -> bool {
        match &self.path {
            PathPattern::Exact(exact) => path == exact,
            PathPattern::Prefix(prefix) => path.starts_with(prefix.as_str()),
        }
    }

    fn takes_method(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
            // Whoever answers GET answers HEAD.
            || (method == Method::HEAD && self.methods.contains(&Method::GET))
    }

    /// Greater is looked at first.
    fn weight(&self) -> (usize, bool, bool) {
        match &self.path {
            PathPattern::Exact(path) => (path.len(), true, !self.methods.is_empty()),
            PathPattern::Prefix(path) => (path.len(), false, !self.methods.is_empty()),
        }
    }
}

/// What is to be done with a request at a site.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<'a, T> {
    Route(&'a T),
    /// The path is there, but not for this method: for these.
    OtherMethods(Vec<Method>),
    Nothing,
}

/// The routes of a site, in the order in which they are looked at.
#[derive(Debug)]
pub(super) struct Routes<T>(Vec<(Rule, T)>);

impl<T> Routes<T> {
    pub(super) fn new(routes: impl IntoIterator<Item = (Rule, T)>) -> Routes<T> {
        let mut routes: Vec<(Rule, T)> = routes.into_iter().collect();
        routes.sort_by_key(|(rule, _)| std::cmp::Reverse(rule.weight()));
        Routes(routes)
    }

    /// The route for a path in its normal form.
    pub(super) fn choose(&self, method: &Method, path: &str) -> Choice<'_, T> {
        let mut others: Vec<Method> = Vec::new();
        for (rule, route) in self.0.iter().filter(|(rule, _)| rule.takes_path(path)) {
            if rule.takes_method(method) {
                return Choice::Route(route);
            }
            for method in &rule.methods {
                if !others.contains(method) {
                    others.push(method.clone());
                }
            }
        }
        if others.is_empty() { Choice::Nothing } else { Choice::OtherMethods(others) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(sites: &[&[&str]]) -> Hosts {
        let patterns: Vec<Vec<HostPattern>> = sites
            .iter()
            .map(|site| {
                let pattern = |text: &&str| match text.strip_prefix("*.") {
                    _ if *text == "*" => HostPattern::Any,
                    Some(rest) => HostPattern::Wildcard(rest.to_owned()),
                    None => HostPattern::Exact((*text).to_owned()),
                };
                site.iter().map(pattern).collect()
            })
            .collect();
        Hosts::new(patterns.iter().map(Vec::as_slice))
    }

    #[test]
    fn the_closest_name_wins() {
        let hosts = hosts(&[
            &["example.com", "*.example.com"],
            &["www.example.com", "[::1]", "2001:db8::1"],
            &["*"],
            &["*.deep.example.com"],
        ]);
        let site = |host: &str| hosts.site(Some(&Host::parse(host).unwrap()));
        assert_eq!(site("example.com"), Some(0));
        assert_eq!(site("EXAMPLE.com.:443"), Some(0));
        assert_eq!(site("a.example.com"), Some(0));
        assert_eq!(site("www.example.com"), Some(1));
        assert_eq!(site("a.b.example.com"), Some(2), "a star is for one label");
        assert_eq!(site("a.deep.example.com"), Some(3));
        assert_eq!(site("other.test"), Some(2));
        assert_eq!(site("[::1]:4433"), Some(1));
        assert_eq!(site("[2001:db8:0::1]"), Some(1));
        assert_eq!(hosts.site(None), Some(2));
        let naming = |host: &str| hosts.naming(&Host::parse(host).unwrap());
        assert_eq!((naming("a.example.com"), naming("[::1]")), (Naming::Named, Naming::Named));
        assert_eq!(naming("other.test"), Naming::CaughtAll);
    }

    #[test]
    fn without_a_default_a_host_must_be_named() {
        let hosts = hosts(&[&["example.com"]]);
        assert_eq!(hosts.site(Some(&Host::parse("other.test").unwrap())), None);
        assert_eq!(hosts.site(None), None);
        assert_eq!(hosts.naming(&Host::parse("other.test").unwrap()), Naming::Unknown);
    }

    fn rule(path: &str, methods: &[Method]) -> Rule {
        let pattern = match path.strip_suffix('*') {
            Some(prefix) => PathPattern::Prefix(prefix.to_owned()),
            None => PathPattern::Exact(path.to_owned()),
        };
        Rule { path: pattern, methods: methods.to_vec() }
    }

    fn routes(rules: &[(&str, &[Method])]) -> Routes<usize> {
        Routes::new(rules.iter().enumerate().map(|(number, (path, methods))| (rule(path, methods), number)))
    }

    #[test]
    fn the_longest_path_wins() {
        let routes = routes(&[
            ("/*", &[]),
            ("/api/*", &[]),
            ("/api/v2/*", &[]),
            ("/api/", &[]),
            ("/about", &[]),
            ("/api/*", &[Method::PUT]),
        ]);
        for (path, expected) in [
            ("/", 0),
            ("/about", 4),
            ("/about/", 0),
            ("/api", 0),
            ("/api/", 3),
            ("/api/x", 1),
            ("/api/v2/x", 2),
        ] {
            assert_eq!(routes.choose(&Method::GET, path), Choice::Route(&expected), "{path}");
        }
        assert_eq!(routes.choose(&Method::PUT, "/api/x"), Choice::Route(&5));
    }

    #[test]
    fn methods_are_part_of_the_choice() {
        let routes = routes(&[("/api/*", &[Method::GET, Method::PUT]), ("/api/x", &[Method::POST])]);
        assert_eq!(routes.choose(&Method::GET, "/api/x"), Choice::Route(&0));
        assert_eq!(routes.choose(&Method::HEAD, "/api/x"), Choice::Route(&0));
        assert_eq!(routes.choose(&Method::POST, "/api/x"), Choice::Route(&1));
        let all = vec![Method::POST, Method::GET, Method::PUT];
        assert_eq!(routes.choose(&Method::DELETE, "/api/x"), Choice::OtherMethods(all));
        assert_eq!(routes.choose(&Method::GET, "/"), Choice::Nothing);
    }

    proptest! {
        #[test]
        fn no_longer_route_is_passed_over(paths in prop::collection::vec("/[ab/]{0,4}\\*?", 1..8), path in "/[ab/]{0,5}") {
            let rules: Vec<(&str, &[Method])> = paths.iter().map(|path| (path.as_str(), &[][..])).collect();
            let fits = |pattern: &str| rule(pattern, &[]).takes_path(&path);
            let longest = paths.iter().filter(|pattern| fits(pattern)).map(|p| p.trim_end_matches('*').len()).max();
            match routes(&rules).choose(&Method::GET, &path) {
                Choice::Route(number) => {
                    prop_assert!(fits(&paths[*number]));
                    prop_assert_eq!(Some(paths[*number].trim_end_matches('*').len()), longest);
                }
                _ => prop_assert_eq!(longest, None),
            }
        }
    }
}
