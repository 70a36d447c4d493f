//! Reading and setting parameters: of what a handle stands for, and of what that belongs to.
//!
//! A parameter of the library goes with no handle, all others with one. A stream answers for its connection as well, and both
//! for the configuration that they have. [`Room`] and [`Given`] are the program's memory, with the rules that all parameters
//! share: too little room is answered with what is needed, whatever else may be wrong.
//!
//! What has a counterpart here takes effect; what only shapes the inside of MsQuic is kept, and told again.

mod cibir;
mod configuration;
mod connection;
mod counts;
mod given;
mod global;
mod kept;
mod listener;
mod room;
mod statistics;
mod stream;
mod tls;
mod versions;

pub(crate) use given::Given;
pub(crate) use kept::{OfConnection, versions_of_client, versions_of_servers};
pub(crate) use room::Room;
pub(crate) use statistics::of_network as network_statistics;
pub(crate) use versions::{Choice, OfServer};

use crate::abi::{Handle, Level, ParameterId, Status};
use crate::configuration::{CONFIGURATIONS, Configuration};
use crate::found::{with_connection, with_stream};
use crate::listener::LISTENERS;
use std::sync::Arc;

/// Reads a parameter.
///
/// # Errors
/// The status of MsQuic: [`Status::BUFFER_TOO_SMALL`] if there is too little room, and the length says how much is needed;
/// [`Status::INVALID_PARAMETER`] if there is no such parameter of what the handle stands for, or there is nowhere to write it;
/// [`Status::INVALID_STATE`] and others of single parameters if they have no value now.
pub(crate) fn get(handle: Handle, parameter: ParameterId, room: &mut Room<'_>) -> Result<(), Status> {
    let is_urgent = parameter.is_high_priority();
    let (parameter, level) = parameter_of(handle, parameter)?;
    if !is_urgent && connection::counts(parameter) {
        catch_up(handle);
    }
    match level {
        Level::Global => global::get(parameter, room),
        Level::Configuration => configuration::get(&*configuration_of(handle)?, parameter, room),
        Level::Listener => {
            let listener = LISTENERS.get(handle).ok_or(Status::INVALID_PARAMETER)?;
            listener::get(&listener, parameter, room)
        }
        Level::Connection => found(with_connection(handle, |_, cx, state, key| {
            connection::get(cx, state, key, parameter, room)
        })),
        Level::Tls | Level::TlsSchannel => found(with_connection(handle, |worker, cx, state, key| {
            tls::get(worker, cx, state, key, parameter, room)
        })),
        Level::Stream => {
            found(with_stream(handle, |cx, state, key| stream::get(cx, state, key, parameter, room)))
        }
        Level::Registration => Err(Status::INVALID_PARAMETER),
    }
}

/// Sets a parameter.
///
/// # Errors
/// The status of MsQuic: [`Status::INVALID_PARAMETER`] if there is no such parameter to set of what the handle stands for, or
/// the value is none that it can have; [`Status::INVALID_STATE`] if it is too early or too late.
pub(crate) fn set(handle: Handle, parameter: ParameterId, given: &Given<'_>) -> Result<(), Status> {
    let (parameter, level) = parameter_of(handle, parameter)?;
    match level {
        Level::Global => global::set(parameter, given),
        Level::Configuration => configuration::set(&*configuration_of(handle)?, parameter, given),
        Level::Listener => {
            let listener = LISTENERS.get(handle).ok_or(Status::INVALID_PARAMETER)?;
            listener::set(&listener, parameter, given)
        }
        Level::Connection => connection::set(handle, parameter, given),
        Level::Tls | Level::TlsSchannel => {
            found(with_connection(handle, |worker, _, state, key| tls::set(worker, state, key)))
        }
        Level::Stream => {
            found(with_stream(handle, |cx, state, key| stream::set(cx, state, key, parameter, given)))
        }
        Level::Registration => Err(Status::INVALID_PARAMETER),
    }
}

/// Waits until the connection that a handle stands for, or whose stream it stands for, has done what it was asked for before: all
/// that it had to hear was told, and what it had to send was sent. Not where a worker's thread would wait, nor where the
/// application polls: the work may be that thread's.
fn catch_up(handle: Handle) {
    let gate = with_connection(handle, |worker, _, state, connection| {
        worker.can_be_waited_for().then(|| state.gate_behind(connection))
    });
    if let Some(gate) = gate.flatten() {
        gate.wait();
    }
}

/// The parameter alone, and of what it is. The library's goes without a handle, and no other does.
fn parameter_of(handle: Handle, parameter: ParameterId) -> Result<(ParameterId, Level), Status> {
    if handle.is_null() != parameter.is_global() {
        return Err(Status::INVALID_PARAMETER);
    }
    let level = parameter.level().ok_or(Status::INVALID_PARAMETER)?;
    Ok((parameter.without_priority(), level))
}

/// What came of looking for what a handle stands for.
fn found<T>(outcome: Option<Result<T, Status>>) -> Result<T, Status> {
    outcome.unwrap_or(Err(Status::INVALID_PARAMETER))
}

/// The configuration that a handle stands for, or that the connection has for which it does.
fn configuration_of(handle: Handle) -> Result<Arc<Configuration>, Status> {
    let of_connection =
        || with_connection(handle, |_, _, state, key| state.connections.get(key)?.configuration.clone());
    CONFIGURATIONS.get(handle).or_else(|| of_connection().flatten()).ok_or(Status::INVALID_PARAMETER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::parameters::{HIGH_PRIORITY, connection as of_connection, global as of_library};
    use std::ptr::{null_mut, without_provenance_mut};

    #[test]
    fn parameters_of_the_library_go_without_a_handle_and_no_others_do() {
        let some = without_provenance_mut(1);
        let urgent = ParameterId(of_library::SETTINGS.0 | HIGH_PRIORITY);
        assert_eq!(parameter_of(null_mut(), urgent), Ok((of_library::SETTINGS, Level::Global)));
        assert_eq!(parameter_of(some, of_library::SETTINGS), Err(Status::INVALID_PARAMETER));
        assert_eq!(parameter_of(null_mut(), of_connection::SETTINGS), Err(Status::INVALID_PARAMETER));
        assert_eq!(
            parameter_of(some, of_connection::SETTINGS),
            Ok((of_connection::SETTINGS, Level::Connection))
        );
        assert_eq!(parameter_of(some, ParameterId(0x0900_0000)), Err(Status::INVALID_PARAMETER));
    }
}
