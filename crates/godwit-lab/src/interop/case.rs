//! The test cases by the names that the runner gives them in `TESTCASE`.
//!
//! Several of the runner's cases are one and the same to the endpoints: the network differs, or what is checked.
//! Those names are taken too, so that a case can be run by hand under the name that its row in the matrix has.

use std::fmt;
use std::str::FromStr;

/// An end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Asks.
    Client,
    /// Answers.
    Server,
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Role, Self::Err> {
        match name {
            "client" => Ok(Role::Client),
            "server" => Ok(Role::Server),
            _ => Err("expected client or server"),
        }
    }
}

/// What an endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Case {
    /// Nothing out of the ordinary.
    Transfer,
    /// Only TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20,
    /// The server demands that clients prove their address.
    Retry,
    /// The second connection resumes the first.
    Resumption,
    /// It also asks for everything in 0-RTT packets.
    ZeroRtt,
    /// HTTP/3 in place of HTTP/0.9.
    Http3,
    /// A connection for every file, one after another.
    MultiConnect,
    /// The server moves clients to version 2 (RFC 9368).
    Version2,
    /// The client changes the keys early on.
    KeyUpdate,
    /// The server has a preferred address.
    Migration,
}

/// A test case that is not ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsupported {
    name: String,
    role: Role,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "test case {:?} is not supported by the {:?}", self.name, self.role)
    }
}

impl std::error::Error for Unsupported {}

impl Case {
    /// The case of this name, if this end supports it.
    ///
    /// # Errors
    /// If it does not.
    pub fn named(name: &str, role: Role) -> Result<Case, Unsupported> {
        let case = match name {
            "handshake" | "transfer" | "longrtt" | "multiplexing" | "blackhole" | "amplificationlimit"
            | "transferloss" | "transfercorruption" | "rebind-port" | "rebind-addr" | "ipv6" | "ecn" => {
                Case::Transfer
            }
            "chacha20" => Case::ChaCha20,
            "retry" => Case::Retry,
            "resumption" => Case::Resumption,
            "zerortt" => Case::ZeroRtt,
            "v2" => Case::Version2,
            "http3" => Case::Http3,
            "multiconnect" | "handshakeloss" | "handshakecorruption" => Case::MultiConnect,
            // It is the client's business; a server is told "transfer".
            "keyupdate" => Case::KeyUpdate,
            // And this the server's; a client is told "transfer".
            "connectionmigration" => Case::Migration,
            _ => return Err(Unsupported { name: name.to_owned(), role }),
        };
        Ok(case)
    }

    /// The application protocol.
    pub(super) fn alpn(self) -> &'static [u8] {
        if self == Case::Http3 { godwit::http3::ALPN } else { super::hq::ALPN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_supported() {
        let unsupported = Case::named("versionnegotiation", Role::Server).unwrap_err();
        assert_eq!(
            unsupported.to_string(),
            "test case \"versionnegotiation\" is not supported by the Server"
        );
        assert!(Case::named("", Role::Client).is_err());
        assert_eq!(Case::named("handshake", Role::Client), Ok(Case::Transfer));
    }
}
