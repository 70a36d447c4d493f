//! What is known while a file is read, and what is noted for the checks across its tables.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::problems::Problems;
use super::reader::Text;
use crate::settings::{HostPattern, Site};

/// How hard to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scrutiny {
    /// The server is to start: what may pass by itself, such as a name that cannot be resolved at present, is
    /// no reason not to.
    Start,
    /// Everything counts.
    Check,
    /// As to start, but that no name is looked up: nothing leaves the machine.
    Text,
}

/// What reading a site needs to know of the rest, and what it notes for the checks across sites.
pub(super) struct Context<'a> {
    pub(super) problems: &'a Problems,
    pub(super) scrutiny: Scrutiny,
    pub(super) listening: Vec<SocketAddr>,
    /// Whether there is any `[[certificate]]`, a bad one included.
    pub(super) has_certificates: bool,
    /// Names of upstreams, to be looked up all at once.
    pub(super) upstream_names: Vec<(String, u16, usize)>,
    /// Folders that are served.
    pub(super) folders: Vec<(PathBuf, usize)>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        problems: &'a Problems,
        scrutiny: Scrutiny,
        listening: Vec<SocketAddr>,
        has_certificates: bool,
    ) -> Context<'a> {
        let (upstream_names, folders) = (Vec::new(), Vec::new());
        Context { problems, scrutiny, listening, has_certificates, upstream_names, folders }
    }
}

/// A site with the places of what is checked against other sites.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) site: Site,
    pub(super) hosts: Vec<(HostPattern, usize)>,
    /// Where each route's pattern and its redirect stand.
    pub(super) routes: Vec<usize>,
    pub(super) tls_at: usize,
}

/// The path of a text, as [`super::problems::Problems::resolve`] sees it, with its place.
pub(super) fn file_of(context: &Context<'_>, text: Text<'_>) -> (std::path::PathBuf, usize) {
    (context.problems.resolve(text.text), text.at)
}
