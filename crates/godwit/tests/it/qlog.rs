//! Traces in files.

use crate::support::{Net, client_config};

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
