//! The path MTU over real sockets, where the loopback interface is made narrow.

use crate::alone::is_alone;
use crate::support::{Net, Pair, pattern, run};
use std::process::Command;

const BEFORE: u16 = 1400;
const AFTER: u16 = 1300;

fn set_mtu(mtu: u16) -> Command {
    let mut command = Command::new("ip");
    command.args(["link", "set", "lo", "mtu", &mtu.to_string(), "up"]);
    command
}

async fn transfer(pair: &Pair) {
    let data = pattern(9, 2_000_000);
    let (sent, mut send) = (data.clone(), pair.client.open_uni().await.unwrap());
    let sending = async {
        send.write_all(&sent).await.unwrap();
        send.finish().unwrap();
    };
    let receiving = async { pair.server.accept_uni().await.unwrap().read_to_end(1 << 22).await.unwrap() };
    let ((), received) = tokio::join!(sending, receiving);
    assert!(received == data);
}

async fn narrowing(net: Net) {
    assert!(set_mtu(BEFORE).status().unwrap().success());
    let pair = net.pair().await;
    let payload = |mtu: u16| mtu - if net.v6 { 48 } else { 28 };
    transfer(&pair).await;
    let stats = pair.client.stats();
    assert_eq!(stats.mtu, payload(BEFORE), "{stats:?}");
    assert!(stats.mtu_search.probes_sent < 5, "one is refused, and the next fits: {stats:?}");
    // What the system refuses from now on tells it at once.
    assert!(set_mtu(AFTER).status().unwrap().success());
    transfer(&pair).await;
    let stats = pair.client.stats();
    assert_eq!(stats.mtu, payload(AFTER), "{stats:?}");
}

#[test]
fn the_mtu_follows_a_route_that_becomes_narrower() {
    if is_alone("mtu::the_mtu_follows_a_route_that_becomes_narrower", "true") {
        for net in [Net::NATIVE_V4, Net::NATIVE_V6, Net::PORTABLE_V4, Net::PORTABLE_V6] {
            run(net, narrowing);
        }
    }
}
