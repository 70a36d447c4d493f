//! What the server is to do: read from a TOML file or made of the command line, checked, and plain from then on.
//!
//! `Settings` is the checked result: every address parsed, every file read once, every host name in the form in
//! which it is compared. Modules that do the work have settings of their own, which are made of these.
//!
//! A file is read by `reader::Table`, which notes every mistake with its line and goes on; `checks` then looks at
//! what only shows across tables. Nothing is opened but files, so that a configuration can be checked beside a
//! server that runs.

mod certificates;
mod checks;
mod context;
mod file;
mod problems;
mod reader;
mod route;
mod site;
#[cfg(test)]
mod tests;
mod upstream;
mod values;

pub use context::Scrutiny;
pub use file::read;
pub use problems::Findings;
pub use upstream::upstream_url;
