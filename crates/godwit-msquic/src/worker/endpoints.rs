//! Changes of what all workers' endpoints do: which versions servers speak, and what connection ids show to others. That is the
//! number of this server to load balancers, and identifiers by which datagrams of several processes with one port are told
//! apart. Workers that there are change with it, as far as ids keep their length once a socket has been asked for.

use super::current::{is_in_use, pool};
use super::shown::{ROOMY, shown};
use crate::parameters::OfServer;
use godwit_transport::{CidIdentifier, Endpoint, ServerId};

/// Has servers do this with versions.
pub(crate) fn set_versions(versions: &OfServer) {
    at_each(|endpoint| endpoint.set_versions(versions.accepted.clone(), versions.upgrade_to));
}

/// Has the ids show another number, or none. Once they have their length only the number can change, and not whether there
/// is one.
pub(crate) fn set_server_id(wanted: Option<ServerId>) {
    let mut shown = shown();
    if is_in_use() && (wanted.is_none() || shown.server_id.is_none()) {
        return;
    }
    shown.server_id = wanted;
    drop(shown);
    at_each(|endpoint| endpoint.set_server_id(wanted));
}

/// A listener has this identifier, or none.
pub(crate) fn set_identifier(wanted: Option<CidIdentifier>) {
    shown().identifier = wanted;
    at_each(|endpoint| endpoint.set_cid_identifier(wanted));
}

/// Identifiers are going to be used: ids are to have room for them, unless they have their length. Then they go without.
pub(crate) fn make_room_for_identifiers() {
    if is_in_use() || std::mem::replace(&mut shown().is_roomy, true) {
        return;
    }
    at_each(|endpoint| endpoint.set_cid_len(ROOMY));
}

fn at_each(change: impl Fn(&mut Endpoint)) {
    for worker in pool().map_or(&[][..], |pool| pool.workers()) {
        worker.visit(|cx, _| change(cx.endpoint_mut()));
    }
}
