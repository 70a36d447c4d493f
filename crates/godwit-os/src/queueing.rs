//! What waits before the network interfaces: whether the kernel keeps the times at which packets are to leave.
//!
//! A packet may carry a departure time (`SO_TXTIME`, `socket(7)`). Most queueing disciplines do not look at it, and nobody
//! is told; `fq` keeps it (`tc-fq(8)`), as the discipline of the interface or below `mq`, which has one for each queue of
//! the hardware. `etf` would drop whatever has no time, or one of a clock other than its own.

use crate::netlink::{ask_for_all, attributes, text, u32_at};
use std::collections::BTreeMap;
use std::io;

/// Types of messages, what all of a type have before their attributes, and the attributes that are read.
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const LINK_LEN: usize = 16;
const LINK_NAME: u16 = 3;
const GET_QDISC: u16 = 38;
const NEW_QDISC: u16 = 36;
const QDISC_LEN: usize = 20;
const QDISC_KIND: u16 = 1;

/// Flags of interfaces.
const UP: u32 = 1;
const LOOPBACK: u32 = 8;
/// The parent of the discipline that all packets pass which leave an interface.
const ROOT: u32 = 0xffff_ffff;
/// The part of a handle that names a discipline; the rest names its classes.
const MAJOR: u32 = 0xffff_0000;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    index: u32,
    flags: u32,
    name: String,
}

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Qdisc {
    interface: u32,
    handle: u32,
    parent: u32,
    kind: String,
}

/// Whether the kernel keeps the departure times of packets, as far as it can be told now: of those that leave by the
/// interface of this name, or by any but the loopback. What passes the loopback leaves at once in either case.
///
/// # Errors
/// If the kernel does not say what its interfaces and their queueing disciplines are.
pub fn keeps_departure_times(interface: Option<&str>) -> io::Result<bool> {
    let (mut links, mut qdiscs) = (Vec::new(), Vec::new());
    ask_for_all(GET_LINK, LINK_LEN, |kind, payload| links.extend(link_of(kind, payload)))?;
    ask_for_all(GET_QDISC, QDISC_LEN, |kind, payload| qdiscs.extend(qdisc_of(kind, payload)))?;
    Ok(all_keep_times(interface, &links, &qdiscs))
}

/// `struct ifinfomsg`: family, padding and type of device, index, flags, and which flags changed.
fn link_of(kind: u16, payload: &[u8]) -> Option<Link> {
    let (index, flags) = (u32_at(payload, 4)?, u32_at(payload, 8)?);
    let name = attributes(payload.get(LINK_LEN..)?).find(|(kind, _)| *kind == LINK_NAME);
    let name = name.and_then(|(_, name)| text(name)).unwrap_or_default().to_owned();
    (kind == NEW_LINK).then_some(Link { index, flags, name })
}

/// `struct tcmsg`: family and padding, index of the interface, handle, parent, and something else.
fn qdisc_of(kind: u16, payload: &[u8]) -> Option<Qdisc> {
    let (interface, handle, parent) = (u32_at(payload, 4)?, u32_at(payload, 8)?, u32_at(payload, 12)?);
    let (_, name) = attributes(payload.get(QDISC_LEN..)?).find(|(kind, _)| *kind == QDISC_KIND)?;
    let name = text(name)?.to_owned();
    (kind == NEW_QDISC).then_some(Qdisc { interface, handle, parent, kind: name })
}

/// Every interface that is concerned has to keep the times, and there has to be one.
fn all_keep_times(interface: Option<&str>, links: &[Link], qdiscs: &[Qdisc]) -> bool {
    let mut of_interfaces: BTreeMap<u32, Vec<&Qdisc>> = BTreeMap::new();
    for qdisc in qdiscs {
        of_interfaces.entry(qdisc.interface).or_default().push(qdisc);
    }
    let mut concerned = links
        .iter()
        .filter(|link| match interface {
            Some(name) => link.name == name,
            None => link.flags & UP != 0 && link.flags & LOOPBACK == 0,
        })
        .map(|link| of_interfaces.get(&link.index).is_some_and(|qdiscs| keeps_times(qdiscs)))
        .peekable();
    concerned.peek().is_some() && concerned.all(|keeps| keeps)
}

/// Whether `fq` is all there is on the way out of an interface.
fn keeps_times(qdiscs: &[&Qdisc]) -> bool {
    let Some(root) = qdiscs.iter().find(|qdisc| qdisc.parent == ROOT) else { return false };
    match root.kind.as_str() {
        "fq" => true,
        "mq" => {
            let is_below =
                |qdisc: &&&Qdisc| qdisc.parent & MAJOR == root.handle & MAJOR && qdisc.parent & !MAJOR != 0;
            let mut below = qdiscs.iter().filter(is_below).peekable();
            below.peek().is_some() && below.all(|qdisc| qdisc.kind == "fq")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::messages;
    use crate::netlink::testing::{attribute, message};

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// An interface as the kernel tells of it, with an attribute before its name.
    fn link(index: u32, flags: u32, name: &str) -> Vec<u8> {
        let fixed = words(&[0, index, flags, 0]);
        let named = attribute(LINK_NAME, format!("{name}\0").as_bytes());
        message(NEW_LINK, 2, &[fixed, attribute(1, &[2, 0, 0, 0, 0, 1]), named].concat())
    }

    fn qdisc(interface: u32, handle: u32, parent: u32, kind: &str) -> Vec<u8> {
        let fixed = words(&[0, interface, handle, parent, 2]);
        let kind = attribute(QDISC_KIND, format!("{kind}\0").as_bytes());
        message(NEW_QDISC, 2, &[fixed, kind, attribute(2, &[7; 40])].concat())
    }

    fn judge(interface: Option<&str>, answers: &[Vec<u8>]) -> bool {
        let all = answers.concat();
        let links: Vec<_> = messages(&all).filter_map(|one| link_of(one.kind, one.payload)).collect();
        let qdiscs: Vec<_> = messages(&all).filter_map(|one| qdisc_of(one.kind, one.payload)).collect();
        all_keep_times(interface, &links, &qdiscs)
    }

    #[test]
    fn every_interface_that_is_up_has_to_have_fq() {
        let (lo, eth0) = (link(1, UP | LOOPBACK, "lo"), link(2, UP | 0x1_0042, "eth0"));
        let (on_lo, on_eth0) = (qdisc(1, 0, ROOT, "noqueue"), qdisc(2, 0x8001_0000, ROOT, "fq"));
        let well = [lo.clone(), eth0.clone(), on_lo.clone(), on_eth0.clone()];
        assert!(judge(None, &well) && judge(Some("eth0"), &well));
        assert!(!judge(Some("lo"), &well) && !judge(Some("eth1"), &well));
        // Another one without, which matters only as long as it is up and no other is asked for.
        let with = |flags| [&well[..], &[link(3, flags, "wg0"), qdisc(3, 0, ROOT, "noqueue")]].concat();
        assert!(judge(None, &with(0)) && !judge(None, &with(UP)) && judge(Some("eth0"), &with(UP)));
        assert!(!judge(None, &[lo.clone(), on_lo.clone()]), "nothing but the loopback");
        assert!(!judge(None, &[lo, eth0.clone(), on_lo]), "nothing known of its discipline");
        for kind in ["fq_codel", "pfifo_fast", "etf", "f", ""] {
            assert!(!judge(None, &[eth0.clone(), qdisc(2, 0, ROOT, kind)]), "{kind}");
        }
        // What comes in is another matter, and so is what hangs below something else.
        let ingress = qdisc(2, 0xffff_0000, 0xffff_fff1, "ingress");
        assert!(judge(None, &[eth0.clone(), ingress, on_eth0.clone()]));
        assert!(!judge(None, &[eth0, qdisc(2, 0x1_0000, ROOT, "htb"), qdisc(2, 0x2_0000, 0x1_0001, "fq")]));
        assert!(!judge(None, &[]));
    }

    #[test]
    fn below_mq_every_queue_has_to_have_fq() {
        for handle in [0, 0x8001_0000] {
            let eth0 = [link(2, UP, "eth0"), qdisc(2, handle, ROOT, "mq")].concat();
            let queues = |kinds: &[&str]| {
                let queues = kinds.iter().zip(1..).map(|(kind, class)| qdisc(2, 0, handle | class, kind));
                judge(None, &[vec![eth0.clone()], queues.collect()].concat())
            };
            assert!(queues(&["fq", "fq"]), "{handle:x}");
            assert!(!queues(&["fq", "fq_codel"]) && !queues(&[]), "{handle:x}");
        }
    }

    #[test]
    fn answers_cut_short_say_nothing() {
        let whole = link(2, UP, "eth0");
        let payload = &whole[16..];
        for len in 0..LINK_LEN {
            assert_eq!(link_of(NEW_LINK, &payload[..len]), None);
        }
        assert_eq!(link_of(NEW_LINK, &payload[..LINK_LEN]).unwrap().name, "");
        assert_eq!(link_of(NEW_QDISC, payload), None);
        let whole = qdisc(2, 0, ROOT, "fq");
        let payload = &whole[16..];
        for len in 0..QDISC_LEN + 7 {
            assert_eq!(qdisc_of(NEW_QDISC, &payload[..len]), None, "{len}");
        }
        assert!(qdisc_of(NEW_QDISC, payload).is_some() && qdisc_of(NEW_LINK, payload).is_none());
    }

    /// Whatever this machine has: it is asked, and the loopback, which has no queue, is never taken for one that keeps
    /// times.
    #[test]
    fn the_kernel_is_asked() {
        match keeps_departure_times(Some("lo")) {
            Ok(keeps) => assert!(!keeps),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
        let _ = keeps_departure_times(None);
    }
}
