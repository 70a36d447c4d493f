//! What a client offers to resume.

use crate::configuration::Random;
use crate::credential::ServerTicket;

/// A session that a client offers to resume, and what is known of what the application thinks of it.
pub(super) struct Offered {
    pub(super) session: OfferedSession,
    /// The callback has put the decision off.
    pub(super) is_put_off: bool,
    /// What was said before that.
    pub(super) answer: Option<bool>,
}

/// A session that a client offers to resume.
pub(in crate::connection) struct OfferedSession {
    /// As it came.
    pub(super) sealed: Vec<u8>,
    pub(super) ticket: ServerTicket,
    /// That of the ClientHello in which it came.
    pub(super) random: Random,
}
