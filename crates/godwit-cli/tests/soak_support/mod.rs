//! The files, the server that has them, and the program that fetches them.

pub(crate) mod client;
pub(crate) mod files;
pub(crate) mod server;
