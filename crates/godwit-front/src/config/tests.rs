//! Configuration files as a whole: what is not said has its default, what is said is taken.

use std::path::Path;
use std::time::Duration;

use super::file::parse;
use super::*;
use crate::settings::*;

fn settings(text: &str) -> Settings {
    let (settings, findings) = parse(Path::new("test.toml"), text, Scrutiny::Check);
    assert_eq!(findings, Findings::default());
    settings.unwrap()
}

const SITE: &str = "[[site]]\nhosts = \"*\"\n[[site.route]]\nrespond = { body = \"hello\" }\n";

#[test]
fn defaults_are_those_of_the_command_line() {
    let read = settings(SITE);
    let plain = Settings::default();
    assert_eq!(read.limits, plain.limits);
    assert_eq!(read.access_log, plain.access_log);
    let cores = std::thread::available_parallelism().unwrap().get().min(255);
    assert_eq!((read.listen.len(), usize::from(read.shards.get()), read.drain), (0, cores, None));
    assert_eq!((read.spin, plain.spin), (Spin::Off, Spin::Off));
    let site = &read.sites[0];
    assert_eq!(site.hosts, [HostPattern::Any]);
    assert_eq!((site.tls, site.advertise, site.server_timing), (SiteTls::Local, Advertise::All, true));
    assert_eq!(site.compress, [Coding::Zstd, Coding::Brotli, Coding::Gzip]);
    assert_eq!(site.routes[0].path, PathPattern::Prefix("/".to_owned()));
}

#[test]
fn everything_that_is_said_is_taken() {
    let read = settings(&format!(
        "listen = [\"127.0.0.1:1443\", \":2443\"]\nredirect_http = \":1080\"\nmetrics = \"127.0.0.1:9090\"\n\
         shards = 3\nspin = \"always:200us\"\ndrain = \"0s\"\nearly_data = \"safe\"\norigins = [\"https://B.test:8443\"]\n[access_log]\nfile = \"-\"\nformat = \"combined\"\nclient_address = \"none\"\n\
         [limits]\nconnections = 7\nconnections_per_address = 2\nidle_connections = 3\nrequests_per_connection = 9\n\
         abandoned_requests = 10\nabandoned_per_second = 0\n\
         header_size = 10000\nbody_size = 5\nheader_timeout = \"1s\"\nidle_timeout = \"2s\"\n\
         send_timeout = \"3s\"\nminimum_rate = \"none\"\n{SITE}"
    ));
    assert_eq!(read.listen, ["127.0.0.1:1443".parse().unwrap(), "[::]:2443".parse().unwrap()]);
    assert_eq!((read.redirect_http.len(), read.metrics.unwrap().port()), (1, 9090));
    assert_eq!((read.shards.get(), read.drain), (3, Some(Duration::ZERO)));
    assert_eq!(read.early_data, EarlyData::Safe);
    assert_eq!(read.origins, ["https://b.test:8443"]);
    assert_eq!(read.spin, Spin::Always(Duration::from_micros(200)));
    let log = AccessLog {
        target: LogTarget::Stdout,
        format: LogFormat::Combined,
        client_address: ClientAddress::None,
    };
    assert_eq!(read.access_log, log);
    let limits = Limits {
        connections: 7,
        connections_per_address: 2,
        idle_connections: 3,
        requests_per_connection: 9,
        abandoned_requests: 10,
        abandoned_per_second: 0,
        header_size: 10_000,
        body_size: Some(5),
        header_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(2),
        send_timeout: Duration::from_secs(3),
        minimum_rate: 0,
    };
    assert_eq!(read.limits, limits);
}

#[test]
fn upstreams_have_their_settings() {
    let read = settings(
        "[[site]]\nhosts = [\"a.test\"]\ncompress = \"br\"\ncompress_with_credentials = true\nadvertise = \"0.5%\"\n[[site.route]]\npath = \"/api/*\"\n\
         strip_prefix = \"/api/\"\nearly_data = \"safe\"\nproxy = [\"http://127.0.0.1:1\", \"https://[::1]:2\"]\n[site.route.upstream]\n\
         connect_timeout = \"1s\"\nbody_timeout = \"1h\"\nmax_idle = 0\nnetwork_share = 40\nretries = 0\nhost = \"b.test:80\"\nforwarded = false\n\
         trust_forwarded = \"127.0.0.1\"\ntls_name = \"c.test\"\nhealth = { path = \"/up?x\", status = 204 }\n",
    );
    let site = &read.sites[0];
    assert_eq!((site.compress.as_slice(), site.advertise), (&[Coding::Brotli][..], Advertise::Percent(0.5)));
    assert!(site.compress_with_credentials);
    let route = &site.routes[0];
    assert_eq!(route.strip_prefix.as_deref(), Some("/api"));
    assert_eq!((read.early_data, route.early_data), (EarlyData::Off, Some(EarlyData::Safe)));
    assert!(read.accepts_early_data());
    let Handler::Proxy(proxy) = &route.handler else { panic!("{route:?}") };
    assert_eq!(proxy.upstreams, ["http://127.0.0.1:1", "https://[::1]:2"]);
    assert_eq!((proxy.connect_timeout, proxy.max_idle, proxy.retries), (Duration::from_secs(1), 0, 0));
    assert_eq!((proxy.body_timeout, proxy.network_share), (Some(Duration::from_secs(3600)), 40));
    assert_eq!(proxy.host, UpstreamHost::Name("b.test:80".to_owned()));
    assert!(!proxy.forwarded);
    assert_eq!(proxy.trust_forwarded[0].prefix, 32);
    assert_eq!(proxy.tls.name.as_deref(), Some("c.test"));
    let health = proxy.health.as_ref().unwrap();
    assert_eq!((health.path.as_str(), health.status.as_u16(), health.healthy), ("/up?x", 204, 2));
}

#[test]
fn a_response_may_be_silent_for_ever() {
    let read = |timeout: &str| {
        let read = settings(&format!(
            "[[site]]\nhosts = [\"a.test\"]\n[[site.route]]\npath = \"/\"\nproxy = \"http://127.0.0.1:1\"\n{timeout}"
        ));
        let Handler::Proxy(proxy) = &read.sites[0].routes[0].handler else { panic!("{read:?}") };
        proxy.body_timeout
    };
    assert_eq!(read(""), Some(Duration::from_secs(300)));
    assert_eq!(read("[site.route.upstream]\nbody_timeout = \"none\"\n"), None);
}

#[test]
fn one_mistake_does_not_hide_the_others() {
    let text = "drain = 5\nshards = 0\n[limits]\nconnections = 0\n[[site]]\nhosts = [\"a:1\", \"b:2\"]\n";
    let (settings, findings) = parse(Path::new("test.toml"), text, Scrutiny::Start);
    assert!(settings.is_none());
    let lines: Vec<&str> = findings.problems.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        lines,
        ["test.toml:1", "test.toml:2", "test.toml:4", "test.toml:5", "test.toml:6", "test.toml:6"]
    );
}
