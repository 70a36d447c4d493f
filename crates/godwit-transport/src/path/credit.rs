//! Protection against amplification (RFC 9000 section 8.1): to an address that may be forged, at most
//! three times the bytes are sent that came from it.

/// What may be sent to an address.
#[derive(Debug, Clone, Copy)]
pub(super) enum Credit {
    /// The peer receives at the address.
    Validated,
    /// The peer may be somewhere else.
    Unvalidated {
        /// Bytes received from the address.
        received: u64,
        /// Bytes sent to it.
        sent: u64,
    },
}

impl Credit {
    const FACTOR: u64 = 3;

    pub(super) const NONE: Credit = Credit::Unvalidated { received: 0, sent: 0 };

    pub(super) const fn is_validated(self) -> bool {
        matches!(self, Credit::Validated)
    }

    /// Bytes that may be sent now.
    pub(super) const fn remaining(self) -> u64 {
        match self {
            Credit::Validated => u64::MAX,
            Credit::Unvalidated { received, sent } => {
                received.saturating_mul(Self::FACTOR).saturating_sub(sent)
            }
        }
    }

    pub(super) const fn on_received(&mut self, bytes: usize) {
        if let Credit::Unvalidated { received, .. } = self {
            *received = received.saturating_add(bytes as u64);
        }
    }

    pub(super) const fn on_sent(&mut self, bytes: usize) {
        if let Credit::Unvalidated { sent, .. } = self {
            *sent = sent.saturating_add(bytes as u64);
        }
    }
}
