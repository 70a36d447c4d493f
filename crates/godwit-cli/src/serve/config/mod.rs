//! What the server is to do: read from a TOML file or made of the command line, checked, and plain from then on.
//!
//! [`Settings`] is the checked result: every address parsed, every file read once, every host name in the form
//! in which it is compared. The other modules have settings of their own; [`super::compose`] makes them of these.

mod command_line;
mod settings;

pub(crate) use settings::*;
