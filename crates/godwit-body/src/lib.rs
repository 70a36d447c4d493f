//! One type for HTTP bodies of all versions, wrappers for it, and the words that servers and services share.
//!
//! Requests and responses of all protocols have a [`BoxBody`], so that a service need not know where a body came
//! from or where it goes. Bodies are streams: nothing here collects one, and a wrapper holds no data back.
//!
//! - [`Counted`], [`Limited`] and [`Timed`] wrap a body of any type, as [`Wrapped`] does with a [`Wrapper`] of anybody's.
//! - [`Exchange`] tells a [`Timed`] body of the response, and the response of the body.
//! - [`MinimumRate`] says what a peer has to move in a time; [`Progress`] and [`ProgressWatch`] judge a connection by
//!   it.
//! - [`IdleConnections`] says which connections give way that nobody asks anything on.
//! - [`ClientNetwork`] is what several addresses of one client have in common, and [`NetworkShares`] are what no network
//!   has more than a part of.
//! - [`Peer`], [`Informational`], [`ExtendedConnect`], [`EarlyData`] and [`TunnelMeter`] are what a server puts into a request's extensions.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod boxed;
mod counted;
mod exchange;
mod idle;
mod limited;
mod network;
mod progress;
mod rate;
mod request;
mod shares;
mod timed;
mod tunnel;
mod wrapped;

pub use boxed::{BoxBody, BoxError, bare, boxed, empty, full};
pub use counted::{Counted, Counter};
pub use exchange::{Exchange, ResponseUnderWay};
pub use idle::{IdleConnections, IdlePlace};
pub use limited::{Exceeded, Limit, Limited};
pub use network::ClientNetwork;
pub use progress::{Progress, ProgressLimits, ProgressWatch, Verdict};
pub use rate::MinimumRate;
pub use request::{EarlyData, ExtendedConnect, Informational, Peer};
pub use shares::{NetworkShares, Share};
pub use timed::{Timed, Timer};
pub use tunnel::TunnelMeter;
pub use wrapped::{FramePoll, Wrapped, Wrapper, data_of};
