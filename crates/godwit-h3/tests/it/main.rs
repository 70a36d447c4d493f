//! The `h3` crate on Godwit: both roles of it with each other, each with Godwit's own HTTP/3, and the traits by
//! themselves.

mod datagrams;
mod early;
mod endings;
mod examples;
mod exchanges;
mod godwits_own;
mod places;
mod streams;
mod support;
mod webtransport;
