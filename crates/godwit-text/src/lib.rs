//! Text for people: what is written for them, and what is read from them.
//!
//! Everything that has a unit, a date or a colour is written and read here, so that two commands never say the same
//! thing in two ways. Nothing here prints, detects a terminal or knows a protocol.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod clock;
mod date;
mod file;
mod printable;
mod style;
pub mod typed;
pub mod units;
mod words;

pub use clock::{instant_now, unix_now};
pub use date::{date, http_date, parse_http_date, rfc3339};
pub use file::{MOST, read_at_most, read_file};
pub use printable::{printable, printable_bytes};
pub use style::Style;
pub use units::{write_duration as duration, write_long_duration as long_duration, write_size as size};
pub use words::{plain_error, shell_word, without_manual};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
