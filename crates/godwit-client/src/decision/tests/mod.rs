//! The decisions on modelled networks, in virtual time: a real QUIC endpoint over a modelled link, and a model of TCP and TLS
//! over another one like it. All chances follow from seeds.
//!
//! `cargo test -p godwit-client decision::tests -- --nocapture` prints the tables.

mod rescue;
mod tcp;
mod visits;
mod world;
