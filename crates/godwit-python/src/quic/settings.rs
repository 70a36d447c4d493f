//! What connections are made with, as far as Python says.

use crate::data::seconds;
use crate::errors::Failure;
use godwit::{ApplicationCode, ConfigError, TransportConfig};
use pyo3::prelude::*;

/// Settings of the transport; every field is an entry of a dictionary, and `None` leaves the default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Transport {
    idle_timeout: Option<f64>,
    keep_alive: Option<f64>,
    handshake_timeout: Option<f64>,
    max_streams: Option<u64>,
    max_unidirectional_streams: Option<u64>,
}

impl Transport {
    pub(crate) fn config(&self) -> Result<TransportConfig, Failure> {
        let mut config = TransportConfig::default();
        if let Some(limit) = self.idle_timeout {
            config.max_idle_timeout = seconds("idle_timeout", limit)?;
        }
        if let Some(interval) = self.keep_alive {
            config.keep_alive = Some(seconds("keep_alive", interval)?);
        }
        if let Some(limit) = self.handshake_timeout {
            config.handshake_timeout = seconds("handshake_timeout", limit)?;
        }
        if let Some(streams) = self.max_streams {
            config.max_bidi_streams = streams;
        }
        if let Some(streams) = self.max_unidirectional_streams {
            config.max_uni_streams = streams;
        }
        Ok(config)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::settings(error)
    }
}

/// An application's error code.
pub(crate) fn code(number: u64) -> Result<ApplicationCode, Failure> {
    ApplicationCode::try_from(number).map_err(Failure::settings)
}
