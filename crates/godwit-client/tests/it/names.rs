//! HTTPS records: the first request to a server goes over HTTP/3, whatever becomes of the question.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use godwit_client::{Client, ClientBuilder, ErrorKind, Response, Versions};
use http::Version;

use crate::dns::{Manner, NameServer};
use crate::support::{Http3, Server};

/// No test waits for it; it only keeps a broken one from hanging.
const LONG: Duration = Duration::from_secs(60);

struct World {
    server: Server,
    http3: Http3,
    names: NameServer,
}

impl World {
    /// A server `first.test` with HTTP/3 at another port, of which the name server knows no more than the address.
    async fn new() -> World {
        let server = Server::start(true).await;
        let http3 = Http3::start(&server);
        let names = NameServer::start().await;
        names.zone.add_loopback("first.test");
        World { server, http3, names }
    }

    /// The name that its record stands under.
    fn owner(&self) -> String {
        format!("_{}._https.first.test", self.server.address.port())
    }

    fn url(&self) -> String {
        format!("https://first.test:{}/alternative", self.server.address.port())
    }

    fn client(&self) -> ClientBuilder {
        self.server.client().dns_server(self.names.address)
    }

    /// Whose record comes in time, however slow the machine is.
    fn patient(&self) -> ClientBuilder {
        self.client().resolution_delay(LONG)
    }

    async fn get(&self, client: &Client) -> Response {
        tokio::time::timeout(LONG, client.get(self.url()).send()).await.unwrap().unwrap()
    }

    /// What happens where only HTTP/3 answers: the version of the first response, and why it is that one.
    async fn first_over_http3(&self) -> (Version, String) {
        self.server.stall();
        self.first_visit(self.patient()).await
    }

    /// The version of the first response, and why it is that one.
    async fn first_visit(&self, client: ClientBuilder) -> (Version, String) {
        let response = self.get(&client.build().unwrap()).await;
        let (version, reason) = (response.version(), response.route().reason.to_string());
        // The server is no alternative of itself.
        assert_eq!(response.text().await.unwrap(), "none", "{reason}");
        (version, reason)
    }
}

#[tokio::test]
async fn the_first_request_goes_over_http3_where_the_record_offers_it() {
    let world = World::new().await;
    world.names.zone.add_http3(&world.owner(), "first.test", world.http3.address.port());
    let (version, reason) = world.first_over_http3().await;
    assert_eq!(version, Version::HTTP_3, "{reason}");
    assert!(reason.starts_with("the server's HTTPS record offers HTTP/3"), "{reason}");
    assert_eq!(world.http3.connections(), 1);
    // What it was asked: both kinds of addresses, and the record.
    let mut asked = world.names.zone.asked();
    asked.sort();
    let mut wanted =
        ["first.test A".to_owned(), "first.test AAAA".to_owned(), format!("{} HTTPS", world.owner())];
    wanted.sort();
    assert_eq!(asked, wanted);
}

#[tokio::test]
async fn aliases_and_other_names_lead_there_too() {
    let world = World::new().await;
    let port = world.http3.address.port();
    world.names.zone.add_alias(&world.owner(), "pool.test");
    world.names.zone.add_cname("pool.test", "pool2.test");
    world.names.zone.add_http3("pool2.test", "machine.test", port);
    world.names.zone.add_loopback("machine.test");
    let (version, reason) = world.first_over_http3().await;
    assert_eq!(version, Version::HTTP_3, "{reason}");
}

#[tokio::test]
async fn hints_do_where_the_target_has_no_address() {
    let world = World::new().await;
    world.names.zone.add_hinted(&world.owner(), "hinted.test", world.http3.address.port(), None);
    let (version, reason) = world.first_over_http3().await;
    assert_eq!(version, Version::HTTP_3, "{reason}");
}

/// Whoever has that name is somebody else: what one server's record says of its address counts for that server only.
#[tokio::test]
async fn hints_of_one_server_lead_nobody_else_astray() {
    let world = World::new().await;
    world.names.zone.add_hinted(&world.owner(), "hinted.test", world.http3.address.port(), None);
    let client = world.patient().build().unwrap();
    assert_eq!(world.get(&client).await.version(), Version::HTTP_3);
    for url in ["http://hinted.test:1/", "https://hinted.test:1/"] {
        let error = tokio::time::timeout(LONG, client.get(url).send()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resolve, "{error}");
    }
}

#[tokio::test]
async fn a_long_answer_comes_over_tcp() {
    let world = World::new().await;
    world.names.zone.add_http3(&world.owner(), "first.test", world.http3.address.port());
    world.names.zone.behave(Manner::Truncated);
    let (version, reason) = world.first_over_http3().await;
    assert_eq!(version, Version::HTTP_3, "{reason}");
    // Also where nothing else is wanted.
    let client = world.patient().versions(Versions::Http3).build().unwrap();
    assert_eq!(world.get(&client).await.version(), Version::HTTP_3);
}

#[tokio::test]
async fn no_answer_and_wrong_answers_cost_no_response() {
    let world = World::new().await;
    for (manner, said) in [
        (Manner::Usual, "the server is not known to offer HTTP/3: it has no HTTPS record"),
        (
            Manner::Failing,
            "the server is not known to offer HTTP/3: its HTTPS record could not be looked up: ",
        ),
        (
            Manner::Garbled,
            "the server is not known to offer HTTP/3: its HTTPS record could not be looked up: ",
        ),
        (Manner::Silent, "the server is not known to offer HTTP/3"),
    ] {
        world.names.zone.behave(manner);
        let client = if manner == Manner::Silent { world.client() } else { world.patient() };
        let (version, reason) = world.first_visit(client).await;
        assert_eq!(version, Version::HTTP_2, "{manner:?}");
        assert!(reason.starts_with(said), "{manner:?}: {reason}");
    }
    world.names.zone.behave(Manner::Usual);
    world.names.zone.add_hinted(&world.owner(), "first.test", world.http3.address.port(), Some(4711));
    let (_, reason) = world.first_visit(world.patient()).await;
    assert!(reason.ends_with("it has no HTTPS record"), "it demands what nobody knows: {reason}");
}

#[tokio::test]
async fn aliases_in_a_circle_lead_nowhere() {
    let world = World::new().await;
    world.names.zone.add_alias(&world.owner(), "a.test");
    world.names.zone.add_alias("a.test", "b.test");
    world.names.zone.add_alias("b.test", "a.test");
    let (version, reason) = world.first_visit(world.patient()).await;
    assert!(version == Version::HTTP_2 && reason.contains("lead nowhere"), "{reason}");
}

#[tokio::test]
async fn an_answer_that_comes_late_counts_for_the_next_request() {
    let world = World::new().await;
    world.names.zone.add_http3(&world.owner(), "first.test", world.http3.address.port());
    world.names.zone.behave(Manner::Late);
    let client = world.client().build().unwrap();
    assert_eq!(world.get(&client).await.version(), Version::HTTP_2);
    world.names.zone.release();
    let moved = async {
        while world.get(&client).await.version() != Version::HTTP_3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, moved).await.unwrap();
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for_again() {
    let world = World::new().await;
    world.names.zone.behave(Manner::Silent);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory");
    let is_mute = || std::fs::read_to_string(&file).unwrap_or_default().contains("mute_resolvers");
    let client = world.client().memory_file(&file).build().unwrap();
    world.get(&client).await;
    client.close().await;
    assert!(is_mute());
    // An answer brings the patience back.
    world.names.zone.behave(Manner::Usual);
    let client = world.client().memory_file(&file).build().unwrap();
    let forgotten = async {
        // Its answer may come too late for itself.
        for other in 0.. {
            let host = format!("other{other}.test");
            world.names.zone.add_loopback(&host);
            let _ = client.get(format!("https://{host}:{}/", world.server.address.port())).send().await;
            let saved = client.clone();
            saved.close().await;
            if !is_mute() {
                return;
            }
        }
    };
    tokio::time::timeout(LONG, forgotten).await.unwrap();
}

#[tokio::test]
async fn names_are_asked_for_over_https() {
    let world = World::new().await;
    world.names.zone.add_http3(&world.owner(), "first.test", world.http3.address.port());
    let resolver = Server::start(true).await;
    resolver.answer_names(Arc::clone(&world.names.zone));
    world.server.stall();
    let client = || {
        let builder = world.server.client().resolution_delay(LONG).root_pem(resolver.certificate.clone());
        builder.dns_over_https(resolver.url("/dns-query")).resolve(
            "localhost",
            resolver.address.port(),
            Ipv4Addr::LOCALHOST.into(),
        )
    };
    let response = world.get(&client().build().unwrap()).await;
    assert_eq!(response.version(), Version::HTTP_3, "{}", response.route().reason);
    assert_eq!(world.names.zone.asked().len(), 3);
    // A name that it does not know is not asked of anybody else.
    let error = client().build().unwrap().get("https://unknown.test/").send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resolve);
    // Nor when it is none.
    let wrong = client().dns_over_https(resolver.url("/who")).build().unwrap();
    let error = wrong.get(world.url()).send().await.unwrap_err();
    assert!(error.to_string().contains("something else than application/dns-message"), "{error}");
    for url in ["http://localhost/", "dns.example"] {
        let error = Client::builder().dns_over_https(url).build().err().unwrap().to_string();
        assert!(error.contains("https://"), "{error}");
    }
}

#[tokio::test]
async fn of_hosts_that_are_known_nobody_is_asked() {
    let world = World::new().await;
    let port = world.server.address.port();
    let client = world.client().resolve("pinned.test", port, Ipv4Addr::LOCALHOST.into()).build().unwrap();
    let response = client.get(format!("https://pinned.test:{port}/who")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), format!("pinned.test:{port} "));
    assert_eq!(world.names.zone.asked(), Vec::<String>::new());
    let records_off = world.client().https_records(false).build().unwrap();
    assert_eq!(world.get(&records_off).await.version(), Version::HTTP_2);
    assert!(world.names.zone.asked().iter().all(|asked| !asked.ends_with("HTTPS")));
}
