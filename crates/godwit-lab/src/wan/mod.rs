//! Emulated wide-area networks: how much of a link a transfer uses, in MsQuic's matrices of networks, and how long small
//! requests take on bad ones.
//!
//! The real transport runs over the link model of `godwit-link` in virtual time ([`Trial`]), many networks at a time
//! ([`Sweep`]). What comes of it goes into a table of comma-separated values with MsQuic's column names ([`csv`]) and
//! into a [`Summary`] beside what MsQuic reached in the same networks ([`Baseline`]), or into [`Rows`], one for each. A
//! [`Record`] is such a table of an earlier run: whether another falls behind it is what continuous integration asks. A
//! [`Single`] transfer is looked at closely, with a trace and a drawing of what its sender did.
//!
//! A [`Profile`] is a network for [`Requests`]: thousands of small ones, each for itself, and the [`Latencies`] of those
//! who wait for them, of which a [`RequestRecord`] keeps what they were. An [`Attribution`] says to what they owe it.
//!
//! How controllers share a link is tried in [`Contest`]s, of which [`Fairness`] makes a table.

mod attribution;
mod baseline;
mod cell;
mod contest;
mod controller;
mod csv;
mod fairness;
mod latencies;
mod matrix;
mod mechanisms;
mod profile;
mod record;
mod recording;
mod request_record;
mod request_table;
mod requests;
mod rows;
mod run;
mod shapley;
mod shard;
mod shortening;
mod single;
mod spread;
mod summary;
mod sweep;
pub mod tcp;

pub use attribution::{Attribution, Worth};
pub use baseline::{Baseline, Reached};
pub use cell::Cell;
pub use contest::{Contest, Flow, Shares};
pub use controller::Controller;
pub use csv::csv;
pub use fairness::{Fairness, FairnessRow, FairnessTable};
pub use godwit_sim::apps::Way;
pub use latencies::Latencies;
pub use matrix::Matrix;
pub use profile::Profile;
pub use record::{Comparison, Fall, Record};
pub use request_record::RequestRecord;
pub use request_table::{RequestRow, RequestTable};
pub use requests::{Acquaintance, Answered, Requests, Without};
pub use rows::Rows;
pub use run::{Observed, Outcome, Trial};
pub use shard::Shard;
pub use shortening::Shortening;
pub use single::{Examined, Single};
pub use summary::Summary;
pub use sweep::{Sweep, Tried, shortened};
