//! Parameters of connections.

mod address;
mod get;
mod set;

pub(super) use get::get;

use super::{Given, cibir, found};
use crate::abi::parameters::connection as p;
use crate::abi::{Handle, ParameterId, Status};
use crate::found::with_connection;
use crate::worker;

/// Whether it counts what was done, and measures it.
pub(super) const fn counts(parameter: ParameterId) -> bool {
    matches!(
        parameter,
        p::STATISTICS | p::STATISTICS_PLAT | p::STATISTICS_V2 | p::STATISTICS_V2_PLAT | p::NETWORK_STATISTICS
    )
}

/// Sets a parameter of the connection that a handle stands for, or the stream's.
pub(super) fn set(handle: Handle, parameter: ParameterId, given: &Given<'_>) -> Result<(), Status> {
    if parameter == p::LOCAL_ADDRESS {
        return address::set_local(handle, given);
    }
    if parameter == p::CIBIR_ID && cibir::is_one(given) {
        // With no worker's lock held: it concerns all of them.
        worker::make_room_for_identifiers();
    }
    found(with_connection(handle, |_, cx, state, key| set::set(cx, state, key, parameter, given)))
}
