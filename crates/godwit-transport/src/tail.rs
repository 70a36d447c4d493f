//! What is done so that nobody waits long for little: settings.

use std::time::Duration;

/// How small exchanges are kept from waiting for a probe timeout where packets are lost.
///
/// Congestion control has no part in how long a request of one packet and an answer of a few take: what decides is how
/// soon the loss of one of them is found out. RFC 9002 waits for a probe timeout, three round trips at first. All of these
/// send more, or sooner, than its section 6.2 says they should; none sends what the congestion window or the limit
/// before address validation forbids but the probes that section 6.2.4 permits, and what is sent again is sent in packets
/// with numbers of their own, which count as in flight (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailPolicy {
    /// A round-trip time that is known from an earlier connection over the same network is believed, and how it varied: the
    /// probe timeout begins with 1.125 to 1.4 of it, not three. Beyond RFC 9002 section 6.2.2, which permits to begin with it, and
    /// other than section 5.3, which has its variation begin with half of it. Default true.
    pub known_rtt: bool,
    /// Flights of at most so many datagrams (Initial, the server's handshake messages, Finished, a request, an answer) are
    /// sent again after [`TailPolicy::spacing`] if nothing else waits to be sent and they are not acknowledged by then;
    /// 0 is none. RFC 9002 has no such thing. Default 2: a ClientHello with a post-quantum key share is as long.
    pub repeated_flight: u8,
    /// The same on networks that have been lossy before: of one packet in two hundred or more, as connections to the same
    /// server, or from clients in the same network, have found of late. Default 4.
    pub repeated_flight_if_lossy: u8,
    /// Of longer flights there, if the window takes them at once, the last datagram is sent again. Default true.
    pub repeated_tail: bool,
    /// How often a flight is sent again. Default 1.
    pub copies: u8,
    /// Datagrams that a connection may send again like this at first. Later it may one more for every three hundred that
    /// it has sent, and two after each second of silence, never more than this at once. Default 8.
    pub allowance: u8,
    /// Datagrams that follow the probes of a probe timeout before the next. RFC 9002 section 6.2.4 permits two at once; these
    /// come later, so that they do not fall into the same burst of losses, and of two that would carry the same only one
    /// is sent at once. Default 2.
    pub spaced_probes: u8,
    /// How far apart what is sent again is from what was sent, at most; a quarter of the round trip if that is less.
    /// Bursts of losses are often shorter. Default 100 ms.
    pub spacing: Duration,
    /// While a peer waits for data, the first four probe timeouts in a row do not become longer than this, but are never
    /// shorter than the first. RFC 9002 section 6.2.1 has them double, so as not to burden a network that is overloaded.
    /// Default none: as the RFC has it.
    pub most_backed_off: Option<Duration>,
    /// Probes ask to be acknowledged at once, if the peer can (draft-ietf-quic-ack-frequency). Default true.
    pub immediate_ack: bool,
    /// After a probe timeout all handshake messages that are not acknowledged are sent again, and not those of two packets
    /// only (RFC 9002 section 6.2.4), and so is other data if it is no more than four datagrams and the window permits.
    /// Default true.
    pub whole_flights: bool,
    /// A client asks with a PING why no more comes, once, when a transfer of more than 16 KiB has stopped in its midst for
    /// three probe timeouts: its address may have been translated to another, which the server learns only from a packet
    /// of the client (RFC 9000 section 9). Default true.
    pub probed_stalls: bool,
}

impl TailPolicy {
    /// What costs four datagrams more than RFC 9002 at most where a cold exchange of 4 kB loses some, and two where a warm
    /// one does: of what is sent unasked, the first datagram of each end alone. The default keeps to that on networks
    /// that are not known to lose packets; on those that are, it spends about 14 so that hardly anybody waits for a
    /// probe timeout.
    pub fn frugal() -> Self {
        TailPolicy {
            repeated_flight: 1,
            repeated_flight_if_lossy: 1,
            repeated_tail: false,
            allowance: 1,
            ..TailPolicy::default()
        }
    }

    /// As RFC 9002 has it.
    pub const fn rfc_9002() -> Self {
        TailPolicy {
            known_rtt: false,
            repeated_flight: 0,
            repeated_flight_if_lossy: 0,
            repeated_tail: false,
            copies: 0,
            allowance: 0,
            spaced_probes: 0,
            spacing: Duration::from_millis(100),
            most_backed_off: None,
            immediate_ack: true,
            whole_flights: false,
            probed_stalls: false,
        }
    }
}

impl Default for TailPolicy {
    fn default() -> Self {
        TailPolicy {
            known_rtt: true,
            repeated_flight: 2,
            repeated_flight_if_lossy: 4,
            repeated_tail: true,
            copies: 1,
            allowance: 8,
            spaced_probes: 2,
            spacing: Duration::from_millis(100),
            most_backed_off: None,
            immediate_ack: true,
            whole_flights: true,
            probed_stalls: true,
        }
    }
}
