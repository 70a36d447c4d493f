//! A connection as its user sees it: thin methods, by topic, over the machine that does the work.

mod datagrams;
mod ending;
mod life;
mod memory;
mod paths;
mod peer;
mod settings;
mod streams;

use super::Machine;
use super::boundary::{ClientArgs, ServerArgs};
use crate::ConnectError;
use godwit_base::{Rng, Time};

/// A connection, of either side.
#[derive(Debug)]
pub struct Connection {
    pub(crate) machine: Machine,
    held_by_application: u64,
}

impl Connection {
    /// Begins a connection to a server. The first packets wait to be sent.
    pub(crate) fn client(now: Time, args: ClientArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        Machine::client(now, args, rng).map(Connection::new)
    }

    /// Answers a client whose first datagram will be given to the machine next.
    pub(crate) fn server(now: Time, args: ServerArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        Machine::server(now, args, rng).map(Connection::new)
    }

    const fn new(machine: Machine) -> Self {
        Connection { machine, held_by_application: 0 }
    }
}
