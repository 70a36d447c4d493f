//! Parameters of listeners.

use super::cibir;
use super::{Given, Room};
use crate::abi::parameters::listener as p;
use crate::abi::{Boolean, ParameterId, Status};
use crate::listener::Listener;
use crate::worker::{self, defence};
use std::sync::Arc;

pub(super) fn get(of: &Listener, parameter: ParameterId, room: &mut Room<'_>) -> Result<(), Status> {
    match parameter {
        p::LOCAL_ADDRESS => room.put(of.told_address()),
        p::STATS => room.put(of.statistics()),
        p::DOS_MODE_EVENTS => room.put(Boolean::from(of.dos_mode_events())),
        p::CIBIR_ID => {
            let id = of.cibir();
            if id.is_empty() {
                room.put_nothing();
                return Ok(());
            }
            room.put_bytes(&id)
        }
        p::PARTITION_INDEX => {
            room.need(size_of::<u16>())?;
            room.put(of.partition().ok_or(Status::INVALID_STATE)?)
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}

pub(super) fn set(of: &Arc<Listener>, parameter: ParameterId, given: &Given<'_>) -> Result<(), Status> {
    match parameter {
        p::DOS_MODE_EVENTS => {
            let wanted = given.yes_or_no()?;
            of.set_dos_mode_events(wanted);
            if wanted && defence::is_on() {
                of.call_in_partition(|| defence::event(true));
            }
            Ok(())
        }
        p::CIBIR_ID => {
            let id = cibir::read(given)?;
            if !id.is_empty() {
                worker::make_room_for_identifiers();
            }
            worker::set_identifier(cibir::identifier(&id));
            of.set_cibir(id);
            Ok(())
        }
        p::PARTITION_INDEX => {
            let partition: u16 = given.exactly()?;
            let there_are = worker::pool().map_or(0, |pool| pool.workers().len());
            if usize::from(partition) >= there_are {
                return Err(Status::INVALID_PARAMETER);
            }
            of.set_partition(partition)
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}
