#![doc = include_str!("../../../docs/library.md")]
