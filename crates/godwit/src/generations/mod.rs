//! Exchanging a program for a newer one while its connections live.
//!
//! A process [hands over](crate::Endpoint::hand_over) to a successor that it starts, which gets the sockets and the
//! secrets, and through them the clients that come from then on. The older one keeps the connections that it has:
//! the newer one, which alone receives, hands their datagrams to it, by the generation that their connection ids
//! tell. When the last of them is over, the older one [has nothing left](crate::Endpoint::drain) and ends.
//!
//! What the two say to each other goes through a pair of Unix sockets that nobody else can reach, as do the
//! datagrams; there are no files. In order:
//!
//! 1. The older one starts the newer one with descriptors and a *letter* that says what each of them is.
//! 2. The newer one makes its endpoint, and says `ready` when everything else is in place, too.
//! 3. The older one stops receiving, names the handshakes that it has begun, and says `go`.
//! 4. The newer one begins to receive, and says `serving`; only now does the older one refuse new connections.
//!
//! A program with several endpoints has such a conversation about each of them, and the second and the third step are
//! taken for all together. The newer one may decline some: these stay with the older one until their connections end.
//!
//! Whatever fails before that, the older one goes on as if nothing had been tried, and sees to it that the newer one
//! is gone: it says `never mind`, and kills it. Datagrams that come between the third step and the fourth wait in the sockets.

mod generation;
mod hand_over;
mod inheritance;
mod letter;
mod lineage;
mod successor;

pub use generation::Generation;
pub use inheritance::{Inheritance, Predecessor};
pub(crate) use lineage::Lineage;
pub use successor::Successor;

/// The environment variable that names the descriptors of the letters, separated by commas.
const VARIABLE: &str = "GODWIT_HAND_OVER";

#[cfg(test)]
mod tests;
