#![doc = include_str!("../../../docs/library.md")]

#[doc = include_str!("../../../docs/from-quinn.md")]
pub mod from_quinn {}
