//! A process that has no descriptors left. It is one of its own: others must not be without.

use crate::support::{Net, client_config, echo, pattern};
use godwit::{Connection, Evidence};
use std::fs::File;
use std::process::Command;
use std::time::Duration;
use tokio::net::UdpSocket;

const LIMITED: &str = "GODWIT_TEST_DESCRIPTORS";

/// Whether this process has few descriptors. If not, the test of this name runs in one that has.
fn is_limited(name: &str) -> bool {
    if std::env::var_os(LIMITED).is_some() {
        return true;
    }
    let mut again = Command::new("sh");
    again.args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(LIMITED, "1");
    assert!(again.status().unwrap().success(), "{name} with few descriptors");
    false
}

async fn round_trip(connection: &Connection) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&pattern(1, 100_000)).await.unwrap();
    send.finish().unwrap();
    assert!(recv.read_to_end(1 << 20).await.unwrap() == pattern(1, 100_000));
}

#[test]
fn connections_live_on_without_descriptors() {
    if !is_limited("descriptors::connections_live_on_without_descriptors") {
        return;
    }
    crate::support::run(Net::NATIVE_V4, async |net| {
        let nobody = UdpSocket::bind(net.any_port()).await.unwrap().local_addr().unwrap();
        let (server, client) = (net.server(), net.reporting().build().unwrap());
        let addr = server.local_addr().unwrap();
        let connecting = client.connect(&client_config(), addr, "localhost").unwrap();
        let (ours, theirs) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let ours = ours.unwrap();
        tokio::spawn(echo(theirs.unwrap()));
        round_trip(&ours).await;
        let reported = async || {
            let attempt = client.connect(&client_config(), nobody, "localhost").unwrap();
            let mut evidence = Evidence::default();
            while evidence.unreachable.is_none() {
                evidence = attempt.evidence_changed(evidence).await;
            }
        };
        let rest = || std::iter::from_fn(|| File::open("/dev/null").ok());
        let mut all: Vec<File> = rest().collect();
        assert!(all.len() > 10);
        // After an error the sockets are to be registered with the runtime anew, which takes descriptors.
        for _ in 0..3 {
            reported().await;
            round_trip(&ours).await;
        }
        all.extend(rest());
        assert!(client.rebind(net.any_port()).is_err());
        // Enough for a socket, but not for registering it.
        all.pop();
        let moved = client.rebind(net.any_port()).unwrap();
        round_trip(&ours).await;
        all.clear();
        while ours.paths().iter().all(|path| path.local != moved || !path.active) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        round_trip(&ours).await;
        reported().await;
        assert!(client.stopped().is_none());
    });
}
