//! What is checked when both ends have done their part, as the interop runner does it: from what passed the relay,
//! from Godwit's own trace, and, always, from the files.

use super::case::Case;
use super::qlog::Told;
use super::trace::{Kind, Seen, Trace, V1, V2, Way};
use godwit_base::Ecn;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a long certificate chain, at least.
const LONG_CHAIN: usize = 7500;
/// Streams that a server may permit at first.
const STREAMS: u64 = 1000;

/// Everything known about a run.
pub(super) struct Evidence<'a> {
    pub(super) trace: &'a Trace,
    pub(super) told: &'a Told,
    /// Whether Godwit was the client.
    pub(super) client: bool,
    /// What Godwit printed.
    pub(super) output: &'a str,
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Checks everything but the files.
pub(super) fn check(case: &Case, evidence: &Evidence<'_>) -> Result<(), String> {
    let trace = evidence.trace;
    let handshakes = trace.handshakes();
    ensure(handshakes == case.handshakes, || {
        format!("{handshakes} handshakes instead of {}", case.handshakes)
    })?;
    let retried = trace.sent_by_server().any(|seen| seen.has(Kind::Retry));
    ensure(case.name == "retry" || !retried, || "an unwanted Retry was sent".to_owned())?;
    match case.name {
        "longrtt" => hellos(evidence),
        "multiplexing" => stream_limit(evidence),
        "retry" => retry(trace, retried),
        "resumption" => resumed(evidence),
        "zerortt" => early_data(trace),
        "keyupdate" => key_phases(evidence),
        "ecn" => ecn(evidence),
        "amplificationlimit" => amplification(trace),
        "ipv6" => only_ipv6(trace),
        "v2" => version_2(trace),
        "rebind-port" => paths(evidence),
        "rebind-addr" => {
            let addresses: BTreeSet<_> = trace.server_addresses.iter().map(|address| address.ip()).collect();
            ensure(addresses.len() > 1, || "the client's address did not change".to_owned())?;
            paths(evidence)
        }
        "connectionmigration" => migration(evidence),
        _ => Ok(()),
    }
}

fn hellos(evidence: &Evidence<'_>) -> Result<(), String> {
    let (sent, received) = evidence.told.hellos;
    let count = if evidence.client { sent } else { received };
    ensure(count >= 2, || format!("{count} ClientHellos; on so slow a path there should be two"))
}

fn stream_limit(evidence: &Evidence<'_>) -> Result<(), String> {
    let (ours, theirs) = evidence.told.streams;
    let limit = if evidence.client { theirs } else { ours };
    ensure(limit.is_some_and(|limit| limit <= STREAMS), || {
        format!("the server permits {limit:?} streams at first; up to {STREAMS} is right")
    })
}

fn retry(trace: &Trace, retried: bool) -> Result<(), String> {
    ensure(retried, || "no Retry was sent".to_owned())
        .and_then(|()| ensure(trace.handshakes() == 1, || "more than one handshake".to_owned()))
}

fn resumed(evidence: &Evidence<'_>) -> Result<(), String> {
    let says = |word: &str| evidence.output.lines().filter(|line| line.contains(word)).count();
    ensure(says("full handshake") == 1 && says("resumed") == 1, || {
        "the second connection did not resume the first".to_owned()
    })
}

fn early_data(trace: &Trace) -> Result<(), String> {
    let early: usize = trace
        .sent_by_client()
        .flat_map(|seen| &seen.long)
        .filter(|long| long.kind == Kind::ZeroRtt)
        .map(|long| long.len)
        .sum();
    let late: usize = trace.sent_by_client().filter_map(|seen| seen.short).map(|(len, _)| len).sum();
    ensure(early > 0, || "nothing was sent in 0-RTT packets".to_owned())?;
    // Half of the names of the files, which is what requests consist of.
    ensure(late <= super::case::EARLY_NAMES / 2, || {
        format!("{late} bytes were sent in 1-RTT packets, {early} before")
    })
}

fn key_phases(evidence: &Evidence<'_>) -> Result<(), String> {
    let (sent, received) = evidence.told.other_phase;
    ensure(sent > 0 && received > 0, || {
        format!("packets of the other key phase: {sent} from Godwit, {received} from the peer")
    })
}

fn ecn(evidence: &Evidence<'_>) -> Result<(), String> {
    let of = |way: Way, seen: &[Seen]| {
        let marks: Vec<Ecn> = seen.iter().filter(|seen| seen.way == way).map(|seen| seen.ecn).collect();
        (marks.iter().any(|mark| matches!(mark, Ecn::Ect0 | Ecn::Ect1)), marks.contains(&Ecn::Ce))
    };
    let ends =
        [("client", of(Way::Up, &evidence.trace.client)), ("server", of(Way::Down, &evidence.trace.server))];
    for (end, (marked, congested)) in ends {
        ensure(marked, || format!("the {end} marked nothing ECT"))?;
        ensure(!congested, || format!("the {end} sent packets marked CE"))?;
    }
    let (sent, received) = evidence.told.ecn_counts;
    ensure(sent > 0 && received > 0, || {
        format!("acknowledgements with ECN counts: {sent} from Godwit, {received} from the peer")
    })
}

/// Up to three times what came, until the client's first Handshake packet; and the long chain was really sent.
fn amplification(trace: &Trace) -> Result<(), String> {
    let (mut received, mut sent) = (0, 0);
    for seen in &trace.server {
        match seen.way {
            Way::Up if seen.has(Kind::Handshake) => break,
            Way::Up => received += seen.len,
            Way::Down => {
                sent += seen.len;
                ensure(sent <= 3 * received, || format!("{sent} bytes were sent for {received}"))?;
            }
        }
    }
    let packets = trace.sent_by_server().flat_map(|seen| &seen.long);
    let chain: usize = packets.filter(|long| long.kind == Kind::Handshake).map(|long| long.len).sum();
    ensure(chain >= LONG_CHAIN, || format!("the server's handshake has only {chain} bytes"))
}

fn only_ipv6(trace: &Trace) -> Result<(), String> {
    let addresses = trace.client_addresses.iter().chain(&trace.server_addresses);
    ensure(addresses.clone().all(|address| address.is_ipv6()), || "IPv4 was used".to_owned())
}

fn version_2(trace: &Trace) -> Result<(), String> {
    let versions = |up: bool, kind: Kind| -> BTreeSet<u32> {
        let all: Vec<&Seen> =
            if up { trace.sent_by_client().collect() } else { trace.sent_by_server().collect() };
        let packets = all.into_iter().flat_map(|seen| &seen.long);
        packets.filter(|long| long.kind == kind).map(|long| long.version).collect()
    };
    ensure(versions(true, Kind::Initial).contains(&V1), || {
        "the client did not begin with version 1".to_owned()
    })?;
    ensure(versions(false, Kind::Initial).contains(&V2), || {
        "the server did not choose version 2".to_owned()
    })?;
    for (end, up) in [("client", true), ("server", false)] {
        let used = versions(up, Kind::Handshake);
        ensure(used == BTreeSet::from([V2]), || {
            format!("the {end}'s Handshake packets have versions {used:x?}")
        })?;
    }
    Ok(())
}

/// The client was seen at several addresses, and the server made sure of each.
fn paths(evidence: &Evidence<'_>) -> Result<(), String> {
    let used: BTreeSet<_> = evidence.trace.sent_by_server().map(|seen| seen.path).collect();
    ensure(used.len() > 1, || "the server sent to one address only".to_owned())?;
    let told = evidence.told;
    let fresh = used.len() - 1;
    ensure(told.challenges.len() >= fresh, || {
        format!("{} path challenges for {fresh} new paths", told.challenges.len())
    })?;
    // A challenge on a path that is over by then goes unanswered.
    let answered = told.challenges.intersection(&told.responses).count();
    ensure(answered >= fresh, || format!("{answered} path challenges answered for {fresh} new paths"))
}

/// The client went to another address of its own accord, with another connection id.
fn migration(evidence: &Evidence<'_>) -> Result<(), String> {
    let told = evidence.told;
    ensure(!told.challenges.is_empty() && !told.responses.is_empty(), || "no path was probed".to_owned())?;
    let mut ids: BTreeMap<usize, BTreeSet<[u8; 4]>> = BTreeMap::new();
    for seen in evidence.trace.sent_by_client() {
        if let Some((_, id)) = seen.short {
            ids.entry(seen.path).or_default().insert(id);
        }
    }
    ensure(ids.len() > 1, || "the client used one path only".to_owned())?;
    let mut seen = BTreeSet::new();
    for id in ids.values().flatten() {
        ensure(seen.insert(id), || "a connection id was used on two paths".to_owned())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(way: Way, path: usize, bytes: &[u8]) -> Seen {
        Seen::new(way, path, Ecn::NotEct, bytes)
    }

    fn handshake(len: usize) -> Vec<u8> {
        let mut bytes = vec![0xe0, 0, 0, 0, 1, 0, 1, 7];
        bytes.extend((0x4000 + len as u16).to_be_bytes());
        bytes.extend(vec![0; len]);
        bytes
    }

    #[test]
    fn the_server_may_send_three_times_what_came() {
        let up = datagram(Way::Up, 0, &[0x40; 1200]);
        let down = datagram(Way::Down, 0, &handshake(1190));
        assert_eq!(down.long.len(), 1);
        let mut trace = Trace { server: vec![up.clone()], ..Trace::default() };
        trace.server.extend(vec![down.clone(); 3]);
        // Within the limit, but too little for the long chain.
        assert!(amplification(&trace).unwrap_err().contains("only 3600 bytes"));
        trace.server.push(down);
        assert!(amplification(&trace).unwrap_err().contains("4800 bytes were sent for 1200"));
    }

    #[test]
    fn migration_wants_another_id_on_another_path() {
        let (mut trace, mut told) = (Trace::default(), Told::default());
        told.challenges.insert("a".to_owned());
        told.responses.insert("a".to_owned());
        trace.client.push(datagram(Way::Up, 0, &[0x40, 1, 1, 1, 1, 1]));
        let judge =
            |trace: &Trace, told: &Told| migration(&Evidence { trace, told, client: true, output: "" });
        assert!(judge(&trace, &told).unwrap_err().contains("one path"));
        trace.client.push(datagram(Way::Up, 1, &[0x40, 1, 1, 1, 1, 1]));
        assert!(judge(&trace, &told).unwrap_err().contains("two paths"));
        trace.client.last_mut().unwrap().short = Some((6, [2; 4]));
        assert_eq!(judge(&trace, &told), Ok(()));
    }
}
