use super::*;
use godwit_link::{Duplicate, LinkConfig, Probability, Reorder};

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn meta(remote: SocketAddr) -> SendMeta {
    SendMeta { socket: SocketId(0), local: None, remote, ecn: Ecn::Ect0, dscp: 0, release: None }
}

struct Pair {
    fabric: Fabric,
    client: HostId,
    server: HostId,
    wire: WireId,
}

fn pair(link: LinkConfig) -> Pair {
    let mut fabric = Fabric::default();
    let client = fabric.add_host("10.0.0.2:5000".parse().unwrap());
    let server = fabric.add_host("10.0.0.1:443".parse().unwrap());
    let wire = fabric.add_wire(client, server, DuplexConfig::symmetric(link), 7).unwrap();
    Pair { fabric, client, server, wire }
}

impl Pair {
    fn send(&mut self, now: Time, from: HostId, to: SocketAddr, payload: &[u8]) {
        self.fabric.send(now, from, &meta(to), payload);
    }

    fn drain(&mut self) -> Vec<(HostId, Time, SocketAddr, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some(now) = self.fabric.next_arrival() {
            self.fabric.deliver(now, |host, packet| {
                let mut bytes = vec![0; packet.size()];
                packet.copy_to(&mut bytes);
                out.push((host, packet.at, packet.source, bytes));
            });
        }
        out
    }
}

#[test]
fn packets_arrive_where_they_are_sent_in_order_of_time() {
    let mut link = LinkConfig::default();
    link.delay = Duration::from_millis(10);
    link.reorder = Some(Reorder { probability: Probability::new(0.3), extra: Duration::from_millis(4) });
    link.duplicate = Some(Duplicate { probability: Probability::new(0.2), after: Duration::from_millis(1) });
    let mut pair = pair(link);
    let (client, server) = (pair.client, pair.server);
    let (a, b) = (pair.fabric.address(client).unwrap(), pair.fabric.address(server).unwrap());
    for step in 0..200_u64 {
        pair.send(at(step), client, b, &[step as u8; 30]);
        pair.send(at(step), server, a, &[!step as u8; 40]);
    }
    let counters = *pair.fabric.duplex(pair.wire).unwrap().up.counters();
    let arrived = pair.drain();
    assert!(arrived.is_sorted_by_key(|(_, at, _, _)| *at));
    let at_server: Vec<_> = arrived.iter().filter(|(host, ..)| *host == server).collect();
    assert_eq!(at_server.len() as u64, 200 + counters.duplicated);
    assert!(counters.duplicated > 0 && counters.reordered > 0);
    for (_, arrival, source, bytes) in &at_server {
        assert_eq!((bytes.len(), *source), (30, a));
        let late = (*arrival - at(u64::from(bytes[0]))).as_millis();
        assert!([10, 11, 14, 15].contains(&late), "{late}");
    }
    // Whatever was sent came at least once.
    let seen: std::collections::BTreeSet<_> = at_server.iter().map(|(.., bytes)| bytes[0]).collect();
    assert_eq!(seen.len(), 200);
}

#[test]
fn a_rebound_client_is_seen_elsewhere_and_its_old_address_is_dead() {
    let mut pair = pair(LinkConfig::delayed(Duration::from_millis(5)));
    let (client, server, wire) = (pair.client, pair.server, pair.wire);
    let (a, b) = (pair.fabric.address(client).unwrap(), pair.fabric.address(server).unwrap());
    pair.send(at(0), client, b, b"one");
    assert_eq!(pair.drain()[0].2, a);
    pair.fabric.rebind(wire, Translation::Port);
    pair.send(at(10), server, a, b"to the old address");
    assert!(pair.drain().is_empty());
    assert_eq!(pair.fabric.counters().untranslatable, 1);
    pair.send(at(20), client, b, b"two");
    let seen = pair.drain()[0].2;
    assert_ne!(seen, a);
    pair.send(at(30), server, seen, b"to the new address");
    assert_eq!(pair.drain()[0].0, client);
    pair.send(at(40), server, "1.2.3.4:5".parse().unwrap(), b"nobody");
    assert_eq!(pair.fabric.counters().unroutable, 1);
}

#[test]
fn filters_change_and_take_out() {
    let mut pair = pair(LinkConfig::default());
    let (client, server) = (pair.client, pair.server);
    let b = pair.fabric.address(server).unwrap();
    pair.fabric.trace_mut().keep_log(2);
    pair.fabric.set_filter(Some(Box::new(|packet| {
        packet.bytes[0] += 1;
        packet.bytes[0] % 2 == 0
    })));
    for byte in 0..10 {
        pair.send(at(0), client, b, &[byte]);
    }
    let bytes: Vec<_> = pair.drain().iter().map(|(.., bytes)| bytes[0]).collect();
    assert_eq!(bytes, [2, 4, 6, 8, 10]);
    assert_eq!(pair.fabric.counters().filtered, 5);
    let log: Vec<_> = pair.fabric.trace().log().iter().map(|entry| entry.fate).collect();
    assert_eq!(log, [Fate::Filtered, Fate::Arrives(at(0))]);
    assert_eq!(pair.fabric.trace().packets(), 10);
}

#[test]
fn hosts_that_rest_get_packets_some_at_a_time() {
    let mut pair = pair(LinkConfig::default());
    let b = pair.fabric.address(pair.server).unwrap();
    pair.fabric.set_rest(Duration::from_millis(10));
    let mut looks = Vec::new();
    for step in 0..100_u64 {
        pair.send(at(step), pair.client, b, &step.to_le_bytes());
        // What arrives at once while nobody rests is handed over at once.
        while let Some(now) = pair.fabric.next_arrival().filter(|next| *next <= at(step)) {
            let mut packets = 0;
            pair.fabric.deliver(now, |_, _| packets += 1);
            looks.push((now, packets));
        }
    }
    let expected: Vec<_> = (0..10).map(|look| (at(look * 10), if look == 0 { 1 } else { 10 })).collect();
    assert_eq!(looks, expected);
}

#[test]
fn same_seed_same_trace() {
    let run = || {
        let mut pair = pair(LinkConfig::delayed(Duration::from_millis(1)));
        let b = pair.fabric.address(pair.server).unwrap();
        for step in 0..50_u64 {
            pair.send(at(step), pair.client, b, &step.to_le_bytes());
        }
        pair.fabric.trace().hash()
    };
    assert_eq!(run(), run());
}
