//! Where plain HTTP leads.

use godwit_certificates::{Facts, Identity, Slot, Source};

use super::*;
use crate::access::Observer;
use crate::settings::{Handler, HostPattern, Settings, Site};

/// With a certificate for `certified.test` and 192.0.2.1.
fn redirect(listening: &[&str], hosts: &[HostPattern]) -> Redirect {
    let listening: Vec<SocketAddr> = listening.iter().map(|text| text.parse().unwrap()).collect();
    let mut site = Site::catch_all(Handler::Pages(&[]));
    site.hosts = hosts.to_vec();
    let settings = Settings { sites: vec![site], ..Settings::default() };
    let front = Front::new(&settings, Observer::quiet()).unwrap();
    let names = ["certified.test".to_owned(), "192.0.2.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let chain = vec![made.cert.der().clone()];
    let facts = Facts::read(&chain[0]).unwrap();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let slot = Slot::new(Source::Local, Identity { chain, key, facts, authority: None }).unwrap();
    Redirect::new(Store::new(vec![slot]).unwrap(), &listening, front)
}

fn exact(name: &str) -> HostPattern {
    HostPattern::Exact(name.to_owned())
}

fn ask(redirect: &Redirect, uri: &str, host: Option<&str>) -> (u16, String) {
    let mut request = Request::builder().uri(uri);
    if let Some(host) = host {
        request = request.header("host", host);
    }
    let response = redirect.answer(&request.body(()).unwrap());
    let location = response.headers().get(LOCATION).map_or("", |value| value.to_str().unwrap());
    (response.status().as_u16(), location.to_owned())
}

#[test]
fn what_is_ours_leads_to_https() {
    let hosts = [exact("example.com"), exact("[::1]"), HostPattern::Wildcard("sub.test".to_owned())];
    let standard = redirect(&["[::]:8443", "[::]:443"], &hosts);
    let to = |uri, host| ask(&standard, uri, Some(host));
    assert_eq!(to("/a?b=c", "example.com"), (308, "https://example.com/a?b=c".to_owned()));
    assert_eq!(to("/", "Example.com.:80"), (308, "https://example.com/".to_owned()));
    assert_eq!(to("/", "[::1]:80"), (308, "https://[::1]/".to_owned()));
    assert_eq!(to("http://a.sub.test/x", "example.com"), (308, "https://a.sub.test/x".to_owned()));
    let other = redirect(&["127.0.0.1:4433"], &[exact("localhost")]);
    assert_eq!(ask(&other, "/x", Some("localhost")), (308, "https://localhost:4433/x".to_owned()));
}

#[test]
fn nobody_is_led_to_a_host_that_a_stranger_chose() {
    let named = redirect(&["[::]:443"], &[exact("example.com")]);
    for host in ["evil.test", "example.com.evil.test", "certified.test", "192.0.2.1"] {
        assert_eq!(ask(&named, "/", Some(host)), (421, String::new()), "{host}");
    }
    assert_eq!(ask(&named, "http://evil.test/", Some("example.com")), (421, String::new()));
    // A site for every host is none of every name.
    let all = redirect(&["[::]:443"], &[HostPattern::Any]);
    assert_eq!(ask(&all, "/", Some("evil.test")), (421, String::new()));
    assert_eq!(ask(&all, "/", Some("certified.test")), (308, "https://certified.test/".to_owned()));
    assert_eq!(ask(&all, "/", Some("192.0.2.1")), (308, "https://192.0.2.1/".to_owned()));
}

#[test]
fn the_address_that_a_client_came_to_is_ours_where_every_host_is() {
    let is_ours = |redirect: &Redirect, host, came_to: &str| {
        redirect.is_ours(&Host::parse(host).unwrap(), came_to.parse().ok())
    };
    let all = redirect(&["[::]:443"], &[HostPattern::Any]);
    assert!(is_ours(&all, "192.0.2.7:80", "192.0.2.7") && is_ours(&all, "[2001:db8::7]", "2001:db8::7"));
    assert!(!is_ours(&all, "192.0.2.8", "192.0.2.7") && !is_ours(&all, "evil.test", "192.0.2.7"));
    assert!(!is_ours(&redirect(&["[::]:443"], &[exact("example.com")]), "192.0.2.7", "192.0.2.7"));
}

#[test]
fn what_cannot_be_redirected_is_refused() {
    let redirect = redirect(&["[::]:443"], &[HostPattern::Any]);
    assert_eq!(ask(&redirect, "/", None).0, 400);
    assert_eq!(ask(&redirect, "/", Some("evil.test/x")).0, 400);
    assert_eq!(ask(&redirect, "/", Some("a b")).0, 400);
}

#[test]
fn health_and_challenges_are_answered_here() {
    let redirect = redirect(&["[::]:443"], &[exact("example.com")]);
    assert_eq!(ask(&redirect, "/healthz", None).0, 200);
    assert_eq!(ask(&redirect, "/.well-known/acme-challenge/unknown", Some("a.test")).0, 404);
}
