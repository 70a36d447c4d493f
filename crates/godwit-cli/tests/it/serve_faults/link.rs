//! The network interface goes down, and comes up again.

use super::{PATIENT, Watched, endpoint_at, site};
use crate::alone::is_alone;
use bytes::Bytes;
use godwit::http3::Client;
use http::Request;
use http_body_util::{BodyExt, Empty};
use std::process::Command;
use std::time::Duration;

const SERVER: &str = "10.9.0.2";
const CLIENT: &str = "10.9.0.1";
/// More than is on the way at any time.
const BIG: u64 = 48 << 20;

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().unwrap();
    assert!(status.success(), "ip {words}");
}

/// A server at the other end of a cable, in a network of its own.
fn beyond_a_cable() -> Watched {
    let config = format!(
        "listen = \"{SERVER}:0\"\n{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\nfiles = \"www\"\n"
    );
    let folder = site(BIG);
    let go = folder.path().join("go");
    let furnish = format!(
        "echo $$ > pid.new; mv pid.new pid; until test -e go; do sleep 0.02; done; ip link set lo up; \
         ip addr add {SERVER}/24 dev right; ip link set right up;"
    );
    let place = folder.path().join("pid");
    let cable = std::thread::spawn(move || {
        while !place.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let process = std::fs::read_to_string(place).unwrap();
        ip("link add name left type veth peer name right");
        ip(&format!("link set right netns {}", process.trim()));
        ip(&format!("addr add {CLIENT}/24 dev left"));
        ip("link set left up");
        std::fs::write(go, "").unwrap();
    });
    let watched = Watched::start_under(&["unshare", "--net"], &furnish, folder, &config);
    cable.join().unwrap();
    watched
}

#[tokio::test]
async fn a_download_outlives_an_interface_that_is_down_for_three_seconds() {
    let name = "serve_faults::link::a_download_outlives_an_interface_that_is_down_for_three_seconds";
    if !is_alone(name, "true") {
        return;
    }
    let watched = beyond_a_cable();
    let there = format!("nsenter --net=/proc/{}/ns/net ip", watched.server.process.id());
    let address = format!("{SERVER}:{}", watched.server.port).parse().unwrap();
    let endpoint = endpoint_at(CLIENT);
    for (who, side) in [("ip", "left"), (there.as_str(), "right")] {
        let set = |state: &str| {
            let line = format!("{who} link set {side} {state}");
            assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
        };
        let client = Client::connect(&endpoint, &watched.config(), address, "localhost").await.unwrap();
        let request = Request::get("https://localhost/big").body(Empty::<Bytes>::new()).unwrap();
        let mut body = client.send(request).await.unwrap().into_body();
        let mut read = 0;
        let mut rising = None;
        while let Some(frame) = body.frame().await {
            read += frame.unwrap().into_data().map_or(0, |data| data.len() as u64);
            if read >= 1 << 20 && rising.is_none() {
                set("down");
                let up = format!("sleep 3; {who} link set {side} up");
                rising = Some(Command::new("sh").args(["-c", &up]).spawn().unwrap());
            }
        }
        assert_eq!(read, BIG, "{side}");
        assert!(rising.unwrap().wait().unwrap().success());
    }
}
