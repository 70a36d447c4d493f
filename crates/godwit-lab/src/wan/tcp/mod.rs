//! HTTP/3 beside the kernel's TCP: real programs' code over real packets, each connection over a link of its own.
//!
//! - `testbed`: two network namespaces, a server on its own thread in one, the clients in the other, the router between
//!   them; `service` is what is served, the same over HTTP/2 (hyper, rustls, the kernel's TCP) and HTTP/3.
//! - `contender`: a connection of one kind, what it uploads and asks. TCP's congestion control is set on every socket.
//! - [`Transfers`] and [`Exchanges`] let the contenders go beside each other, so that a busy moment of the machine hits all
//!   of them; [`Validation`] compares HTTP/3's figures with those of simulations.
//!
//! Everything happens in real time and in one process. What the machine adds is told with the figures
//! ([`Testbed::lateness`]).

mod comparison;
mod contender;
mod exchanges;
mod service;
mod settings;
mod setup;
mod testbed;
mod transfers;
mod validation;

pub use comparison::{Comparison, Part};
pub use contender::Contender;
pub use exchanges::{Exchanges, Path, Row, Timed};
pub use settings::Options;
pub use testbed::Testbed;
pub use transfers::{Transferred, Transfers};
pub use validation::{Took, Used, Validated, Validation};
