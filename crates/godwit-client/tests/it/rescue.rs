//! UDP that dies: what is under way goes on, from another port or over TCP.

use std::sync::Mutex;
use std::time::Duration;

use godwit_client::download::{Destination, Download, Observer};
use godwit_client::{Again, Client, ErrorKind, Route, Target, Versions};
use http::Version;
use http_body_util::BodyExt;

use crate::relay::{Death, Relay};
use crate::support::{Http3, Server, TAGGED, tagged_contents};

/// No test waits for it; it only keeps a broken one from hanging.
const LONG: Duration = Duration::from_secs(60);

/// A server whose HTTP/3 is reached by a relay.
struct World {
    server: Server,
    http3: Http3,
    relay: Relay,
}

impl World {
    async fn new(dies_after: u64, death: Death) -> World {
        let server = Server::start(true).await;
        let http3 = Http3::start(&server);
        let relay = Relay::start(http3.address, dies_after, death).await;
        server.advertise(relay.address.port());
        World { server, http3, relay }
    }

    fn client(&self) -> Client {
        self.server.client().build().unwrap()
    }

    /// A client that has come to HTTP/3.
    async fn moved(&self) -> Client {
        let client = self.client();
        let moved = async {
            while client.get(self.server.url("/who")).send().await.unwrap().version() != Version::HTTP_3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, moved).await.unwrap();
        client
    }
}

/// The connections that a download went over.
#[derive(Default)]
struct Routes(Mutex<Vec<(Version, Option<Again>)>>);

impl Observer for Routes {
    fn on_route(&self, route: &Route) {
        self.0.lock().unwrap().push((route.version, route.again));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_whose_udp_dies_goes_on_over_tcp() {
    let world = World::new(TAGGED as u64 / 2, Death::Whole).await;
    let client = world.moved().await;
    let folder = tempfile::tempdir().unwrap();
    let (path, routes) = (folder.path().join("x"), Routes::default());
    let download = Download::new(Target::parse(&world.server.url("/tagged")).unwrap());
    let run = download.run(&client, Destination::File(path.clone()), &routes);
    let (timing, outcome) = tokio::time::timeout(LONG, run).await.unwrap();
    outcome.unwrap();
    assert!(world.relay.is_dead());
    assert_eq!(std::fs::read(path).unwrap(), tagged_contents());
    assert_eq!(timing.bytes, TAGGED as u64);
    assert_eq!(*routes.0.lock().unwrap(), [(Version::HTTP_3, None), (Version::HTTP_2, Some(Again::Silent))]);
    eprintln!("8 MiB with the death of UDP at half took {:?}", timing.total);
    // What the next one asks for goes over TCP at once.
    let response = client.get(world.server.url("/who")).send().await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_read_by_a_program_goes_on_too() {
    let world = World::new(TAGGED as u64 / 2, Death::Whole).await;
    let client = world.moved().await;
    let response = client.get(world.server.url("/tagged")).send().await.unwrap();
    assert_eq!(response.version(), Version::HTTP_3);
    let body = tokio::time::timeout(LONG, response.into_body().collect()).await.unwrap().unwrap();
    assert_eq!(body.to_bytes(), tagged_contents());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_forgotten_is_exchanged_for_another() {
    let world = World::new(TAGGED as u64 / 2, Death::KnownPorts).await;
    let client =
        world.server.client().versions(Versions::Http3).addresses("localhost", [world.relay.address]);
    let client = client.build().unwrap();
    let response = client.get(world.server.url("/tagged")).send().await.unwrap();
    let body = tokio::time::timeout(LONG, response.into_body().collect()).await.unwrap().unwrap();
    assert_eq!(body.to_bytes(), tagged_contents());
    assert!(world.relay.is_dead());
    assert_eq!((world.http3.connections(), world.server.connections()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_sent_twice_is_answered_over_tcp() {
    let world = World::new(u64::MAX, Death::Whole).await;
    let client = world.moved().await;
    let asked = client.get(world.server.url("/soon")).send();
    let died = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.relay.die();
    };
    let (response, ()) = tokio::time::timeout(LONG, async { tokio::join!(asked, died) }).await.unwrap();
    let response = response.unwrap();
    assert_eq!(
        (response.version(), response.route().again),
        (Version::HTTP_2, Some(Again::Silent)),
        "{}",
        response.route().reason
    );
    assert_eq!(response.text().await.unwrap(), "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_sent_twice_is_not() {
    let world = World::new(u64::MAX, Death::Whole).await;
    let client = world.moved().await;
    let connections = world.server.connections();
    world.relay.die();
    let asked = client.post(world.server.url("/echo")).body("once").timeout(Duration::from_secs(4)).send();
    assert_eq!(asked.await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(world.server.connections(), connections);
}
