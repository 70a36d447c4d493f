//! What is checked when both ends have done their part, as the interop runner does it: from what passed the relay,
//! from Godwit's own trace, and, always, from the files.

use super::case::Case;
use super::gaps;
use super::qlog::Told;
use super::trace::{Kind, Seen, Trace, V1, V2, Way};
use godwit_base::Ecn;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a long certificate chain, at least.
const LONG_CHAIN: usize = 7500;
/// What Godwit's server says of a client that offers what it should.
const CHACHA_ONLY: &str = "offered [TLS13_CHACHA20_POLY1305_SHA256]";
/// Packets that a packet may be off its place.
const REORDERED: usize = 32;
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
    ensure(
        case.name == "v2" || versions(trace.sent_by_server(), Kind::Initial) == BTreeSet::from([V1]),
        || "the server used other versions than 1".to_owned(),
    )?;
    match case.name {
        "chacha20" => only_chacha(evidence),
        "longrtt" => hellos(evidence),
        "multiplexing" => stream_limit(evidence),
        "retry" => retry(evidence),
        "resumption" => resumed(evidence),
        "zerortt" => early_data(trace),
        "keyupdate" => key_phases(evidence),
        "ecn" => ecn(evidence),
        "amplificationlimit" => amplification(evidence),
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

/// A Retry was sent, the client has shown its token, and did not begin to count its packets anew.
fn retry(evidence: &Evidence<'_>) -> Result<(), String> {
    let trace = evidence.trace;
    let retries = trace.sent_by_server().flat_map(|seen| &seen.long).filter(|long| long.kind == Kind::Retry);
    let tokens: BTreeSet<_> = retries.map(|long| &long.token).collect();
    ensure(!tokens.is_empty(), || "no Retry was sent".to_owned())?;
    let mut shown = trace.sent_by_client().flat_map(|seen| &seen.long);
    ensure(shown.any(|long| long.kind == Kind::Initial && tokens.contains(&long.token)), || {
        "no Initial packet has the token of the Retry".to_owned()
    })?;
    let numbers = &evidence.told.initials;
    ensure(!evidence.client || numbers.is_sorted_by(|one, next| one < next), || {
        format!("the numbers of the Initial packets are {numbers:?}")
    })
}

/// Nothing else was offered. Only the server is told; Godwit's client has nothing else to offer.
fn only_chacha(evidence: &Evidence<'_>) -> Result<(), String> {
    let offers: BTreeSet<_> = evidence.output.lines().filter(|line| line.starts_with("offered ")).collect();
    ensure(evidence.client || offers == BTreeSet::from([CHACHA_ONLY]), || format!("the client {offers:?}"))
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

/// Up to three times what came, until the client's first Handshake packet; and the long chain was really sent. Peers may
/// go up to four times, as the runner lets them: some look at the limit before a datagram only, not at its size.
fn amplification(evidence: &Evidence<'_>) -> Result<(), String> {
    let (trace, factor) = (evidence.trace, if evidence.client { 4 } else { 3 });
    let (mut received, mut sent) = (0, 0);
    for seen in &trace.server {
        match seen.way {
            Way::Up if seen.has(Kind::Handshake) => break,
            Way::Up => received += seen.len,
            Way::Down => {
                sent += seen.len;
                ensure(sent <= factor * received, || format!("{sent} bytes were sent for {received}"))?;
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

/// The versions of the packets of a type.
fn versions<'a>(packets: impl Iterator<Item = &'a Seen>, kind: Kind) -> BTreeSet<u32> {
    packets.flat_map(|seen| &seen.long).filter(|long| long.kind == kind).map(|long| long.version).collect()
}

fn version_2(trace: &Trace) -> Result<(), String> {
    ensure(versions(trace.sent_by_client(), Kind::Initial).contains(&V1), || {
        "the client did not begin with version 1".to_owned()
    })?;
    ensure(versions(trace.sent_by_server(), Kind::Initial).contains(&V2), || {
        "the server did not choose version 2".to_owned()
    })?;
    let used = [
        ("client", versions(trace.sent_by_client(), Kind::Handshake)),
        ("server", versions(trace.sent_by_server(), Kind::Handshake)),
    ];
    for (end, used) in used {
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
    ensure(answered >= fresh, || format!("{answered} path challenges answered for {fresh} new paths"))?;
    if evidence.client { Ok(()) } else { challenged_at_once(evidence) }
}

/// The first packet that Godwit's server sent on each new path has a path challenge, which was answered.
fn challenged_at_once(evidence: &Evidence<'_>) -> Result<(), String> {
    let told = evidence.told;
    let mut known = BTreeSet::new();
    let shorts = evidence.trace.sent_by_server().filter_map(|seen| Some((seen.path, seen.short?.0)));
    for (number, (path, len)) in shorts.enumerate() {
        if !known.insert(path) || known.len() == 1 {
            continue;
        }
        // Godwit's trace has them too, but the relay may have read its sockets in another order.
        let near = told.sent.iter().skip(number.saturating_sub(REORDERED)).take(2 * REORDERED + 1);
        let challenges: Vec<_> =
            near.filter(|(told, _)| *told == len).filter_map(|(_, data)| data.as_ref()).collect();
        ensure(!challenges.is_empty(), || format!("no path challenge in the first packet on path {path}"))?;
        ensure(challenges.iter().any(|data| told.responses.contains(*data)), || {
            format!("the path challenge on path {path}, one of {challenges:?}, was not answered")
        })?;
    }
    Ok(())
}

/// The client went to another address of its own accord, with another connection id.
fn migration(evidence: &Evidence<'_>) -> Result<(), String> {
    let told = evidence.told;
    let mut ids: BTreeMap<usize, BTreeSet<[u8; 4]>> = BTreeMap::new();
    for seen in evidence.trace.sent_by_client() {
        if let Some((_, id)) = seen.short {
            ids.entry(seen.path).or_default().insert(id);
        }
    }
    ensure(ids.len() > 1, || gaps::STAYED.to_owned())?;
    ensure(!told.challenges.is_empty() && !told.responses.is_empty(), || "no path was probed".to_owned())?;
    let mut seen = BTreeSet::new();
    for id in ids.values().flatten() {
        ensure(seen.insert(id), || "a connection id was used on two paths".to_owned())?;
    }
    paths(evidence)
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
        let judge = |trace: &Trace, client| {
            let told = Told::default();
            amplification(&Evidence { trace, told: &told, client, output: "" }).unwrap_err()
        };
        assert!(judge(&trace, false).contains("only 3600 bytes"));
        trace.server.push(down.clone());
        assert!(judge(&trace, false).contains("4800 bytes were sent for 1200"));
        assert!(judge(&trace, true).contains("only 4800 bytes"), "a peer");
        trace.server.push(down);
        assert!(judge(&trace, true).contains("6000 bytes were sent for 1200"));
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
        assert!(judge(&trace, &told).unwrap_err().contains("to one address only"));
        trace.server.extend([0, 1].map(|path| datagram(Way::Down, path, &[0x40, 9, 9, 9, 9, 9])));
        assert_eq!(judge(&trace, &told), Ok(()));
    }

    #[test]
    fn a_server_challenges_in_the_first_packet_on_a_path() {
        let (mut trace, mut told) = (Trace::default(), Told::default());
        for (path, len) in [(0, 20), (1, 30), (0, 40), (2, 50)] {
            trace.server.push(datagram(Way::Down, path, &vec![0x40; len]));
        }
        let sent = [(20, None), (25, None), (30, Some("a")), (40, None), (50, Some("b"))];
        told.sent = sent.map(|(len, data)| (len, data.map(str::to_owned))).to_vec();
        told.challenges = ["a", "b"].map(str::to_owned).into();
        told.responses = ["a", "b"].map(str::to_owned).into();
        let judge = |told: &Told| paths(&Evidence { trace: &trace, told, client: false, output: "" });
        assert_eq!(judge(&told), Ok(()));
        let mut late = Told { sent: told.sent.clone(), ..Told::default() };
        (late.challenges, late.responses) = (told.challenges.clone(), told.responses.clone());
        late.sent[4].1 = None;
        assert!(judge(&late).unwrap_err().contains("first packet on path 2"));
        told.responses = ["a", "c"].map(str::to_owned).into();
        told.challenges.insert("c".to_owned());
        assert!(judge(&told).unwrap_err().contains(r#"["b"], was not answered"#));
    }

    #[test]
    fn the_token_of_a_retry_is_shown() {
        let mut retry = vec![0xf0, 0, 0, 0, 1, 0, 1, 7, 1, 2];
        retry.extend([0; 16]);
        let mut trace = Trace { server: vec![datagram(Way::Down, 0, &retry)], ..Trace::default() };
        let mut told = Told { initials: vec![0, 1], ..Told::default() };
        let judge = |trace: &Trace, told: &Told| {
            super::retry(&Evidence { trace, told, client: true, output: "" }).unwrap_err()
        };
        assert!(judge(&trace, &told).contains("no Initial packet"));
        trace.client.push(datagram(Way::Up, 0, &[0xc0, 0, 0, 0, 1, 0, 1, 7, 2, 1, 2, 0x40, 1, 0]));
        told.initials = vec![0, 0];
        assert!(judge(&trace, &told).contains("[0, 0]"));
    }

    #[test]
    fn only_chacha_may_be_offered() {
        let (trace, told) = (Trace::default(), Told::default());
        let judge = |output| only_chacha(&Evidence { trace: &trace, told: &told, client: false, output });
        assert_eq!(judge("offered [TLS13_CHACHA20_POLY1305_SHA256]\n"), Ok(()));
        assert!(judge("offered [TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256]\n").is_err());
        assert!(judge("").is_err());
    }
}
