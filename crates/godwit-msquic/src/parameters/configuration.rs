//! Parameters of configurations.

use super::{Given, Room};
use crate::abi::parameters::{configuration as p, private_configuration as private};
use crate::abi::plain::read_all;
use crate::abi::{Boolean, ParameterId, SettingValues, Status, TicketKeyConfig};
use crate::configuration::Configuration;
use crate::settings;

pub(super) fn get(of: &Configuration, parameter: ParameterId, room: &mut Room<'_>) -> Result<(), Status> {
    match parameter {
        p::SETTINGS => {
            let own = of.settings();
            room.put_settings(&own, &settings::over(&settings::globals(), &[&own]))
        }
        p::VERSION_SETTINGS => of.with_versions(|versions| versions.get(room)),
        private::VERSION_NEG_ENABLED => {
            room.put(Boolean::from(of.with_versions(|versions| versions.negotiated.unwrap_or_default())))
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}

pub(super) fn set(of: &Configuration, parameter: ParameterId, given: &Given<'_>) -> Result<(), Status> {
    match parameter {
        p::SETTINGS => of.change_settings(&SettingValues::read(given.bytes()?)?),
        p::VERSION_SETTINGS => of.with_versions(|versions| versions.set(given)),
        p::TICKET_KEYS => {
            let keys: Vec<TicketKeyConfig> = read_all(given.bytes()?);
            if keys.is_empty() {
                return Err(Status::INVALID_PARAMETER);
            }
            of.credential().ok_or(Status::INVALID_STATE)?.set_ticket_keys(&keys)
        }
        private::VERSION_NEG_ENABLED => {
            let negotiated = Boolean(given.at_least::<u8>()?).is_true();
            of.with_versions(|versions| versions.negotiated = Some(negotiated));
            Ok(())
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}
