//! Files that people name.

pub(crate) use godwit_text::read_at_most;
