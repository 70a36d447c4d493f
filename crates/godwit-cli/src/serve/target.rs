//! Where the server is.

/// A place to reach the server at: the host as a browser's address line has it, and the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    pub(super) fn url(&self) -> String {
        match self.port {
            443 => format!("https://{}/", self.host),
            port => format!("https://{}:{port}/", self.host),
        }
    }
}
