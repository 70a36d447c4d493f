//! Tickets that are good for 0-RTT, and for one connection only.
//!
//! Whoever records a client's first flight can send it again, with the 0-RTT packets in it (RFC 8446 section 8). So a ticket is
//! known here from when it is given out until it is used, and what is not known resumes a session without 0-RTT: a second copy,
//! and what another process has given out. With it is kept what the client may send before it hears anything (RFC 9000
//! section 7.4.1): a server that permits less today takes no 0-RTT.

use crate::credential::EarlyId;
use godwit_transport::TransportConfig;
use godwit_transport::tls::fill_random;
use godwit_transport::tls::resumption::EarlySessions;
use rustls::server::StoresServerSessions;

/// Tickets that are known at once, for each configuration. When there are more, the oldest are forgotten.
const MOST: usize = 16_384;

/// The tickets of a configuration that are good for 0-RTT.
#[derive(Debug)]
pub(crate) struct EarlyTickets(EarlySessions);

impl EarlyTickets {
    pub(super) fn new() -> Self {
        EarlyTickets(EarlySessions::new(MOST))
    }

    /// Knows a ticket from now on, for clients that keep to these limits. `None` if there are no random numbers.
    pub(crate) fn give(&self, limits: &TransportConfig) -> Option<EarlyId> {
        let mut id = EarlyId::default();
        fill_random(&mut id).ok()?;
        let bytes = limits_of(limits).into_iter().flat_map(u64::to_be_bytes).collect();
        self.0.put(id.to_vec(), bytes).then_some(id)
    }

    /// Whether a ticket is good for 0-RTT under these limits. It is not from now on.
    pub(crate) fn take(&self, id: &EarlyId, limits: &TransportConfig) -> bool {
        let Some(before) = self.0.take(id) else { return false };
        let (before, _) = before.as_chunks();
        before.iter().zip(limits_of(limits)).all(|(before, now)| u64::from_be_bytes(*before) <= now)
    }
}

/// What a client may make use of in 0-RTT packets.
fn limits_of(config: &TransportConfig) -> [u64; 6] {
    [
        config.initial_connection_window,
        config.initial_stream_window,
        config.max_bidi_streams,
        config.max_uni_streams,
        config.datagrams.max_frame_size,
        config.active_cid_limit,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_and_in_one_place() {
        let (tickets, others, limits) =
            (EarlyTickets::new(), EarlyTickets::new(), TransportConfig::default());
        let [one, two] = [(); 2].map(|()| tickets.give(&limits).unwrap());
        assert_ne!(one, two);
        assert!(!others.take(&one, &limits));
        assert!(tickets.take(&one, &limits) && !tickets.take(&one, &limits) && tickets.take(&two, &limits));
    }

    #[test]
    fn lower_limits_than_before_rule_it_out() {
        let (tickets, mut limits) = (EarlyTickets::new(), TransportConfig::default());
        for (change, good) in [(1, true), (0, true), (-1, false)] {
            let id = tickets.give(&limits).unwrap();
            limits.max_bidi_streams = limits.max_bidi_streams.saturating_add_signed(change);
            assert_eq!(tickets.take(&id, &limits), good, "{change}");
        }
    }
}
