//! Servers on several threads.

use crate::support::{Net, client_config, echo, on_every_net, pattern, server_config};
use std::sync::Arc;
use std::sync::Mutex;
use std::thread::ThreadId;

on_every_net! {
    connections_spread_over_threads,
}

async fn connections_spread_over_threads(net: Net) {
    const SHARDS: usize = 3;
    let seen: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let application = {
        let seen = Arc::clone(&seen);
        move |connection| {
            seen.lock().unwrap().push(std::thread::current().id());
            echo(connection)
        }
    };
    let builder = net.builder().server(server_config());
    let shards = builder.run_shards(SHARDS, Some(vec![0]), application).unwrap();
    let addr = shards.local_addr().unwrap();
    let (client, config) = (net.client(), client_config());
    let mut connections = Vec::new();
    for number in 0..40 {
        let connection = client.connect(&config, addr, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&pattern(number, 20_000)).await.unwrap();
        send.finish().unwrap();
        assert!(recv.read_to_end(1 << 20).await.unwrap() == pattern(number, 20_000));
        connections.push(connection);
    }
    let mut threads = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(threads.len(), 40);
    threads.sort_by_key(|id| format!("{id:?}"));
    threads.dedup();
    // All from one address: by address they would all be on one. That 40 miss one of three by chance
    // happens once in three million times.
    if cfg!(target_os = "linux") {
        assert_eq!(threads.len(), SHARDS);
    }
    let stats = shards.stats();
    assert_eq!(stats.iter().map(|shard| shard.connections).sum::<usize>(), 40);
    shards.close(4, b"");
    for connection in connections {
        assert_eq!(connection.closed().await.application_code(), Some(4));
    }
    tokio::task::spawn_blocking(move || shards.join()).await.unwrap().unwrap();
}

#[tokio::test]
async fn shards_run_where_the_application_says() {
    let own = std::thread::current().id();
    let builder = Net::NATIVE_V4.builder().server(server_config());
    let runtime = tokio::runtime::Handle::current();
    let (shards, endpoints) = builder.run_shards_on(&[runtime.clone(), runtime]).unwrap();
    let served: Arc<Mutex<Vec<usize>>> = Arc::default();
    for (number, endpoint) in endpoints.into_iter().enumerate() {
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                assert_eq!(std::thread::current().id(), own);
                served.lock().unwrap().push(number);
                tokio::spawn(async move { echo(incoming.accept().await.unwrap()).await });
            }
        });
    }
    let (client, addr) = (Net::NATIVE_V4.client(), shards.local_addr().unwrap());
    let mut connections = Vec::new();
    for number in 0..40 {
        let connection = client.connect(&client_config(), addr, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&pattern(number, 20_000)).await.unwrap();
        send.finish().unwrap();
        assert!(recv.read_to_end(1 << 20).await.unwrap() == pattern(number, 20_000));
        connections.push(connection);
    }
    // That 40 are all with one of two by chance happens once in 10^12 times.
    if cfg!(target_os = "linux") {
        let served = served.lock().unwrap();
        assert!(served.contains(&0) && served.contains(&1), "{served:?}");
    }
    shards.close(4, b"");
    for connection in connections {
        assert_eq!(connection.closed().await.application_code(), Some(4));
    }
}

#[test]
fn as_many_as_connection_ids_can_tell() {
    for count in [0, 257] {
        let refused = Net::NATIVE_V4.builder().run_shards(count, None, echo);
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}
