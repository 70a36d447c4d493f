//! Workers: the threads on which everything happens, one for each processor, each with a shard of its own.
//!
//! They are started when the first registration is opened, and stay until the process ends, waiting for work: nothing is to
//! be set up again by who opens the library once more. Where the application has threads of its own for this, each worker does
//! its work when it is polled, until the application takes its threads away.
//!
//! A call of the application's looks into a shard under its lock, on whatever thread it is made. Callbacks are made on the
//! worker's own thread, with the lock free, one at a time: so there are never two for a connection and its streams, and a
//! call that is made in one acts at once. What it acts on is told later, and never within the call, but for closing: what a
//! handle has still to hear is told before the close returns.

mod common_sockets;
mod current;
pub(crate) mod defence;
mod delivery;
mod endpoints;
pub(crate) mod executions;
mod gate;
mod news;
mod news_queue;
mod polled;
mod polling;
mod pool;
mod shown;
mod start;
mod state;
mod token_secrets;
mod urgent;
mod waiting;

pub(crate) use current::{has_started, is_in_use, on_closed, on_opened, pool};
pub(crate) use defence::set_retries_always;
pub(crate) use delivery::deliver_all;
pub(crate) use endpoints::{make_room_for_identifiers, set_identifier, set_server_id, set_versions};
pub(crate) use gate::Gate;
pub(crate) use news::{ConnectionNews, StreamNews};
pub(crate) use pool::{Pool, Worker};
pub(crate) use start::start;
pub(crate) use state::{State, TurnOf};
pub(crate) use token_secrets::{set_reset_key, set_token_secret};
