//! What an upstream is told of the client: Forwarded (RFC 7239), and the older fields with the same in them.

use super::{Facts, append, begins_in_hyphens, is_in_hyphens};
use crate::settings::Settings;
use http::header::{Entry, FORWARDED};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Longer hosts than those that DNS has, and a port, are not remembered.
const LONGEST_HOST: usize = 300;

/// Tells about the client, beside what is left when [claims](remove_claims) are gone.
pub(super) fn forward(headers: &mut HeaderMap, facts: &Facts<'_>, settings: &Settings) {
    if !settings.forwarded {
        return;
    }
    let words = Words::of(facts);
    if words.address.is_some() {
        append(headers, FORWARDED_FOR, words.address.clone());
        insert_unless_there(headers, REAL_IP, words.address);
    }
    insert_unless_there(headers, FORWARDED_PROTO, Some(HeaderValue::from_static(scheme(facts))));
    insert_unless_there(headers, FORWARDED_HOST, facts.host.cloned());
    append(headers, FORWARDED, words.element);
}

fn insert_unless_there(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let (Some(value), Entry::Vacant(vacant)) = (value, headers.entry(name)) {
        vacant.insert(value);
    }
}

/// Takes out what the peer says about itself or others, unless it is trusted.
pub(super) fn remove_claims(headers: &mut HeaderMap, facts: &Facts<'_>, settings: &Settings) {
    let trusted = facts.peer.is_some_and(|peer| settings.trusts(peer));
    let claims: Vec<HeaderName> =
        headers.keys().filter(|name| is_claim(name.as_str(), trusted)).cloned().collect();
    for name in &claims {
        headers.remove(name);
    }
}

/// Whether a field claims something about the client that only a trusted peer may say. Some applications do
/// not tell underscores from hyphens, so nobody may say it with those.
pub(super) fn is_claim(name: &str, trusted: bool) -> bool {
    let claim = is_in_hyphens(name, "forwarded")
        || is_in_hyphens(name, "x-real-ip")
        || begins_in_hyphens(name, "x-forwarded-");
    claim && (!trusted || name.contains('_'))
}

fn scheme(facts: &Facts<'_>) -> &'static str {
    if facts.secure { "https" } else { "http" }
}

/// What is said of a client that asks for something at a host.
#[derive(Clone, Debug)]
struct Words {
    /// Its address alone.
    address: Option<HeaderValue>,
    /// The element of this hop in Forwarded.
    element: Option<HeaderValue>,
}

/// A client and the host that it asks: what the words follow from.
#[derive(Debug, PartialEq)]
struct Subject {
    address: Option<IpAddr>,
    secure: bool,
    host: Option<HeaderValue>,
}

thread_local! {
    /// The last words: the next request is most often of the same client.
    static LAST: RefCell<Option<(Subject, Words)>> = const { RefCell::new(None) };
}

impl Words {
    fn of(facts: &Facts<'_>) -> Words {
        let address = facts.peer.map(|peer| peer.address.ip().to_canonical());
        LAST.with_borrow_mut(|last| {
            if let Some((subject, words)) = last
                && subject.address == address
                && subject.secure == facts.secure
                && subject.host.as_ref() == facts.host
            {
                return words.clone();
            }
            let words = Words {
                address: address.and_then(|address| HeaderValue::try_from(address.to_string()).ok()),
                element: HeaderValue::try_from(element(address, facts)).ok(),
            };
            if facts.host.is_none_or(|host| host.len() <= LONGEST_HOST) {
                let subject = Subject { address, secure: facts.secure, host: facts.host.cloned() };
                *last = Some((subject, words.clone()));
            }
            words
        })
    }
}

/// The element of this hop in Forwarded (RFC 7239 section 4).
fn element(address: Option<IpAddr>, facts: &Facts<'_>) -> String {
    let mut element = String::new();
    match address {
        Some(IpAddr::V4(addr)) => _ = write!(element, "for={addr};"),
        Some(IpAddr::V6(addr)) => _ = write!(element, "for=\"[{addr}]\";"),
        None => element.push_str("for=unknown;"),
    }
    if let Some(host) = facts.host.and_then(|host| host.to_str().ok()) {
        let token = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
        // A host that has been parsed has neither quotes nor backslashes.
        _ = if token { write!(element, "host={host};") } else { write!(element, "host=\"{host}\";") };
    }
    element.push_str("proto=");
    element.push_str(scheme(facts));
    element
}
