//! Traces in files.

use crate::support::{Net, client_config};
use godwit::Time;
use godwit::observe::{Observer, ObserverFactory, TransportEvent, TransportEventKind, TransportMask};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts connections that are over, and is told of nothing else.
struct Counting(Arc<AtomicU64>);

impl Observer for Counting {
    fn mask(&self) -> TransportMask {
        TransportEventKind::ConnectionClosed.mask()
    }

    fn on_event(&mut self, _: Time, event: &TransportEvent<'_>) {
        assert!(matches!(event, TransportEvent::ConnectionClosed { .. }), "not wanted: {event:?}");
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn observers_of_a_program_watch_beside_one_another() {
    let counts = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let watching = |count: &Arc<AtomicU64>| {
        let count = Arc::clone(count);
        ObserverFactory::new(move |_| Some(Box::new(Counting(Arc::clone(&count)))))
    };
    let net = Net::NATIVE_V4;
    let server = net.builder().server(crate::support::server_config()).observers(watching(&counts[0]));
    let server = server.observers(watching(&counts[1])).build().unwrap();
    let client = net.builder().observers(watching(&counts[2])).build().unwrap();
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let (outgoing, incoming) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    outgoing.unwrap().close(0, b"");
    incoming.unwrap().closed().await;
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1; 3]);
}

/// Has a defect.
struct Panicking(Arc<AtomicU64>);

impl Observer for Panicking {
    fn mask(&self) -> TransportMask {
        TransportEventKind::ConnectionStarted.mask()
    }

    fn on_event(&mut self, _: Time, event: &TransportEvent<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("as the test wants, over {:?}", event.kind());
    }
}

#[tokio::test]
async fn an_observer_that_panics_costs_nobody_a_connection() {
    let told = Arc::new(AtomicU64::new(0));
    let factory = {
        let told = Arc::clone(&told);
        // One of each: the first cannot even be made.
        ObserverFactory::new(move |_| match told.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("as the test wants"),
            _ => Some(Box::new(Panicking(Arc::clone(&told)))),
        })
    };
    let net = Net::NATIVE_V4;
    let server = net.builder().server(crate::support::server_config()).observers(factory).build().unwrap();
    let client = net.client();
    for _ in 0..2 {
        let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
        let (outgoing, incoming) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        outgoing.unwrap().close(7, b"");
        assert_eq!(incoming.unwrap().closed().await.application_code(), Some(7));
    }
    assert_eq!(told.load(Ordering::Relaxed), 3, "two that were to be made, and one event");
}

#[tokio::test]
async fn every_connection_is_traced_at_both_ends() {
    let folder = std::env::temp_dir().join(format!("godwit-qlog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let net = Net::NATIVE_V4;
    let server = net.builder().server(crate::support::server_config()).qlog_dir(&folder).build().unwrap();
    let client = net.builder().qlog_dir(&folder).build().unwrap();
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let (outgoing, incoming) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    outgoing.unwrap().close(0, b"");
    incoming.unwrap().closed().await;
    client.close(0, b"");
    server.close(0, b"");
    client.wait_idle().await;
    server.wait_idle().await;
    drop((client, server));
    // By a thread, at the latest when the endpoints are gone.
    let is_complete = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path()).unwrap().contains("quic:connection_closed")
    };
    while std::fs::read_dir(&folder).unwrap().map(is_complete).filter(|complete| *complete).count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut ends = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let trace = std::fs::read_to_string(&path).unwrap();
        assert!(trace.starts_with("\u{1e}{\"file_schema\""), "{trace:.80}");
        assert!(trace.contains("quic:packet_sent"), "{trace:.800}");
        ends.push(path.file_stem().unwrap().to_str().unwrap().split_once('_').unwrap().1.to_owned());
    }
    ends.sort();
    assert_eq!(ends, ["client", "server"]);
    std::fs::remove_dir_all(&folder).unwrap();
}
