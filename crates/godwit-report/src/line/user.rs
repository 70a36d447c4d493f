//! Whom a request belongs to: a hash that is the same in every program and on every machine.

/// The hash of a user's name in the log.
pub(super) fn of_name(name: &[u8]) -> u64 {
    finish(extend(START, name))
}

/// The hash of the network of a client's address: the /24 of IPv4, the /48 of IPv6.
pub(super) fn of_network(client: &[u8]) -> u64 {
    if client.contains(&b':') {
        return of_prefix_6(client);
    }
    let end = client.iter().rposition(|&byte| byte == b'.').unwrap_or(client.len());
    finish(extend(START, client.get(..end).unwrap_or(client)))
}

/// Three groups of an IPv6 address; those that `::` leaves out are 0.
fn of_prefix_6(client: &[u8]) -> u64 {
    let mut groups = client.split(|&byte| byte == b':');
    let mut hash = extend(START, b"6");
    for _ in 0..3 {
        let group = groups.next().unwrap_or_default();
        if group.is_empty() {
            break;
        }
        hash = extend(extend(hash, group), b":");
    }
    finish(hash)
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a.
fn extend(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Spreads the last bytes over all bits.
fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
