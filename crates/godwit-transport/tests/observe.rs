//! Connections watched by a qlog: the log is well formed, complete, and agrees with the counters.

mod common;

use common::Pair;
use godwit_base::Time;
use godwit_transport::observe::{
    Observer, ObserverFactory, TransportEvent, TransportEventKind, TransportMask,
};
use godwit_transport::qlog::Qlog;
use godwit_transport::{ConnKey, Side, TransportConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// With a congestion controller that reduces its window at every loss.
fn transport() -> TransportConfig {
    let mut transport = common::transport();
    transport.congestion = godwit_transport::CongestionAlgorithm::Cubic.into();
    transport
}

/// The logs of both ends as they were written.
type Logs = Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>;

fn logging(logs: &Logs) -> ObserverFactory {
    let logs = Arc::clone(logs);
    ObserverFactory::new(move |info| {
        let logs = Arc::clone(&logs);
        let name = if info.side == Side::Client { "client" } else { "server" };
        let sink = move |record: &[u8]| {
            logs.lock().unwrap().entry(name).or_default().extend_from_slice(record);
        };
        Some(Box::new(Qlog::new(info, Box::new(sink))))
    })
}

/// Takes a log apart: header first.
fn records(logs: &Logs, name: &str) -> Vec<Value> {
    let logs = logs.lock().unwrap();
    let text = std::str::from_utf8(&logs[name]).unwrap();
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""), "a record begins with its separator");
    records
        .map(|record| {
            let record = record.strip_suffix('\n').expect("a record ends with a line feed");
            serde_json::from_str(record).unwrap_or_else(|error| panic!("{error}: {record}"))
        })
        .collect()
}

fn named<'a>(records: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["name"] == name).map(|record| &record["data"])
}

fn count(records: &[Value], name: &str) -> u64 {
    named(records, name).count() as u64
}

/// A connection that is set up, used and closed.
fn exchange(logs: &Logs, config: &TransportConfig, lose_every: u64) -> (Pair, ConnKey, ConnKey) {
    let mut pair = Pair::new(&logging(logs), config.clone());
    pair.lose_every = lose_every;
    let client = pair.connect(config.clone());
    pair.steps(60);
    let (server, _) = pair.server_events();
    for _ in 0..10 {
        pair.say(client, &[b'x'; 50_000]);
        pair.steps(30);
    }
    (pair, client, server.unwrap())
}

#[test]
fn a_log_agrees_with_the_counters() {
    let logs = Logs::default();
    let (pair, client, server) = exchange(&logs, &transport(), 0);
    let ends = [("client", pair.client.connection(client)), ("server", pair.server.connection(server))];
    for (name, connection) in ends {
        let stats = connection.unwrap().stats();
        let records = records(&logs, name);
        assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], name);
        assert!(records[1..].iter().all(|record| record["name"].as_str().unwrap().starts_with("quic:")));
        assert_eq!(count(&records, "quic:packet_sent"), stats.packets_sent);
        let bytes: u64 =
            named(&records, "quic:packet_sent").filter_map(|data| data["raw"]["length"].as_u64()).sum();
        assert_eq!(bytes, stats.bytes_sent, "packets fill the datagrams");
        let window = named(&records, "quic:recovery_metrics_updated")
            .filter_map(|data| data["congestion_window"].as_u64())
            .last();
        assert_eq!(window, Some(stats.window));
        let mtu = named(&records, "quic:mtu_updated").filter_map(|data| data["new"].as_u64()).last();
        assert_eq!(mtu, Some(u64::from(stats.mtu)));
        let ecn: Vec<_> = named(&records, "quic:ecn_state_updated").map(|data| &data["new"]).collect();
        assert_eq!(ecn, ["testing", "unknown", "capable"]);
        assert_eq!(count(&records, "quic:packet_lost"), 0);
    }
    let [client, server] = ["client", "server"].map(|name| records(&logs, name));
    assert_eq!(
        client[0]["trace"]["common_fields"]["group_id"],
        server[0]["trace"]["common_fields"]["group_id"]
    );
    // Nothing is lost on this wire; the last packets may be under way.
    let (sent, received) = (count(&client, "quic:packet_sent"), count(&server, "quic:packet_received"));
    assert!(received <= sent && received + 2 >= sent, "{received} of {sent}");
}

#[test]
fn a_log_tells_a_connection_from_start_to_end() {
    let logs = Logs::default();
    let (mut pair, client, _) = exchange(&logs, &transport(), 0);
    pair.client.with(client, |connection| connection.close(pair.now, 42, b"\"enough\"\x1e"));
    pair.steps(20);
    for (name, closer) in [("client", "local"), ("server", "remote")] {
        let records = records(&logs, name);
        let times: Vec<f64> = records[1..].iter().map(|record| record["time"].as_f64().unwrap()).collect();
        assert!(times.is_sorted() && times[0] == 0.0);
        let states: Vec<_> =
            named(&records, "quic:connection_state_updated").map(|data| &data["new"]).collect();
        let last = if name == "client" { "closing" } else { "draining" };
        assert_eq!(states, ["attempted", "handshake_complete", "handshake_confirmed", last]);
        let closed: Vec<_> = named(&records, "quic:connection_closed").collect();
        assert_eq!(
            (closed.len(), &closed[0]["initiator"], &closed[0]["error_code"]),
            (1, &closer.into(), &42.into())
        );
        let by: Vec<_> = named(&records, "quic:parameters_set").map(|data| &data["initiator"]).collect();
        assert_eq!(by, ["local", "remote"]);
        let chosen: Vec<_> = named(&records, "quic:alpn_information").collect();
        assert_eq!(chosen[0]["chosen_alpn"]["string_value"], "test");
        assert_eq!(count(&records, "quic:key_updated"), 6, "three levels, two keys each");
        assert_eq!(count(&records, "quic:key_discarded"), 4);
        assert_eq!(count(&records, "quic:version_information"), 1);
        assert!(count(&records, "quic:connection_id_updated") > 0);
        let opened = |data: &&Value| data["new"] == "open";
        let streams = named(&records, "quic:stream_state_updated").filter(opened).count();
        assert_eq!(streams, 10);
    }
    let said = named(&records(&logs, "server"), "quic:connection_closed").next().unwrap()["reason"].clone();
    assert_eq!(said, "\"enough\"\u{1e}");
}

#[test]
fn losses_are_told_one_by_one() {
    let logs = Logs::default();
    let (pair, client, _) = exchange(&logs, &transport(), 23);
    let stats = pair.client.connection(client).unwrap().stats();
    let records = records(&logs, "client");
    assert!(stats.packets_lost > 5, "{stats:?}");
    let mut told: Vec<(String, u64)> = named(&records, "quic:packet_lost")
        .map(|data| &data["header"])
        .map(|header| (header["packet_type"].to_string(), header["packet_number"].as_u64().unwrap()))
        .collect();
    assert!(told.len() as u64 >= stats.packets_lost, "{} of {}", told.len(), stats.packets_lost);
    let all = told.len();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), all, "each once");
    let lowest = |name: &str| {
        named(&records, "quic:recovery_metrics_updated")
            .filter_map(|data| data[name].as_f64())
            .fold(f64::MAX, f64::min)
    };
    assert_eq!(lowest("min_rtt"), 10.0);
    assert!(lowest("ssthresh") < 1e9, "the window was reduced");
}

#[test]
fn key_updates_and_moves_are_told() {
    let logs = Logs::default();
    let mut config = transport();
    config.key_update_after = Some(50);
    let (mut pair, client, server) = exchange(&logs, &config, 0);
    pair.client_address.set_port(4001);
    pair.say(client, b"from elsewhere");
    pair.steps(20);
    let updates = pair.server.connection(server).unwrap().stats().key_updates;
    assert!(updates > 0);
    for (name, trigger) in [("client", "local_update"), ("server", "remote_update")] {
        let records = records(&logs, name);
        let told = named(&records, "quic:key_updated").filter(|data| data["trigger"] == trigger).count();
        assert!(told as u64 >= 2, "{name}: {told}");
        let phases =
            named(&records, "quic:packet_sent").filter_map(|data| data["header"]["key_phase"].as_u64());
        assert_eq!(phases.max(), Some(updates), "{name}");
    }
    let records = records(&logs, "server");
    let moves: Vec<_> = named(&records, "quic:migration_state_updated").map(|data| &data["new"]).collect();
    let begun = [&Value::from("probing_started"), &Value::from("migration_started")];
    assert!(moves.starts_with(&begun), "{moves:?}");
    assert!(moves.contains(&&Value::from("migration_complete")), "{moves:?}");
    let tuple = named(&records, "quic:tuple_assigned").next().unwrap();
    assert_eq!((&tuple["tuple_id"], &tuple["tuple_remote"]["port_v4"]), (&"1".into(), &4001.into()));
}

/// Counts what it is told.
struct Counter {
    mask: TransportMask,
    told: Arc<Mutex<Vec<TransportEventKind>>>,
}

impl Observer for Counter {
    fn mask(&self) -> TransportMask {
        self.mask
    }

    fn on_event(&mut self, _: Time, event: &TransportEvent<'_>) {
        self.told.lock().unwrap().push(event.kind());
    }
}

#[test]
fn an_observer_is_told_what_it_asked_for_and_nothing_else() {
    for kind in TransportEventKind::ALL {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let factory = ObserverFactory::new(move |_| {
            Some(Box::new(Counter { mask: kind.mask(), told: Arc::clone(&sink) }))
        });
        let mut pair = Pair::new(&factory, transport());
        pair.lose_every = 17;
        let client = pair.connect(transport());
        pair.steps(60);
        pair.say(client, &[b'x'; 50_000]);
        pair.steps(30);
        pair.client.close_all(pair.now, 0, b"");
        pair.steps(5);
        let told = told.lock().unwrap();
        assert!(told.iter().all(|other| other == kind), "{kind:?}");
        let rare = [
            TransportEventKind::TupleAssigned,
            TransportEventKind::MigrationStateUpdated,
            TransportEventKind::PacketDropped,
        ];
        assert!(!told.is_empty() || rare.contains(kind), "{kind:?}");
    }
}
