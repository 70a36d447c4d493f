//! Limits and switches of a connection.

use godwit_wire::codec::VARINT_MAX;

/// Limits and switches of a connection: plain values, to be changed from [`Config::default`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The most that the fields of one message may take, counted as `SETTINGS_MAX_FIELD_SECTION_SIZE`
    /// does: names, values and 32 bytes for each. Headers, informational responses and trailers share
    /// it. Default 64 KiB.
    pub max_field_section_size: u64,
    /// Requests a server handles at once; more are rejected. Default 1024.
    pub max_requests: usize,
    /// Bytes of HEADERS frames that are incomplete, or wait for the dynamic table, held at once, over all streams. Default
    /// 1 MiB.
    pub max_buffered_headers: usize,
    /// The most memory for the dynamic table of QPACK (RFC 9204), in bytes, in each direction: what the peer may have for its
    /// headers, and what is used for ours of what it permits. With 0 there is none. Default 4096.
    pub qpack_max_table_capacity: u64,
    /// How many streams of the peer may wait for entries of the dynamic table that have not come: messages get shorter, and
    /// one lost packet may hold up several. With 0 none may; the table is used all the same. Default 16.
    pub qpack_blocked_streams: usize,
    /// Whether a server accepts extended CONNECT (RFC 9220). Default false.
    pub enable_connect_protocol: bool,
    /// The origins for which a server answers on each connection, beside that of the name in the handshake, such as
    /// `https://www.example.com` (RFC 9412). Clients may then ask for them there without looking up their addresses, if
    /// the certificate is for them; and for no others. As many are told as 16 KiB hold. Default none, which says nothing.
    pub origins: Vec<String>,
    /// Whether HTTP datagrams (RFC 9297) are taken, on extended CONNECT exchanges. The QUIC connection must take datagrams.
    /// Default false.
    pub enable_datagrams: bool,
    /// How many WebTransport sessions there may be at once on a connection (draft-ietf-webtrans-http3); a server rejects
    /// more. With 0 there is no WebTransport; otherwise `enable_connect_protocol` and `enable_datagrams` are taken as set.
    /// Default 0.
    pub max_webtransport_sessions: usize,
    /// Whether reserved settings and frames are sent now and then, so that peers keep ignoring what they
    /// do not know (RFC 9114 section 7.2.8). Default true.
    pub grease: bool,
    /// How many useless things (empty DATA frames, frames and streams of unknown types, KiB of those,
    /// repeated control frames) a peer may send at once, beyond what its useful traffic earns, before the
    /// connection is closed with H3_EXCESSIVE_LOAD. Default 1000.
    pub useless_allowance: u32,
    /// How much of [`Config::useless_allowance`] comes back in each second. Default 16.
    pub useless_per_second: u32,
    /// How many requests a client may abandon (or get wrong) before they are answered, beyond one for
    /// each that it lets finish, before the connection is closed with H3_EXCESSIVE_LOAD. Default 256.
    pub abandoned_allowance: u32,
    /// How much of [`Config::abandoned_allowance`] comes back in each second: who closes a stream of events now and
    /// then, or asks anew with every letter of a search, may do so as long as the connection lives. Default 16.
    pub abandoned_per_second: u32,
}

impl Config {
    /// What is told to the peer is what can be told.
    pub(crate) fn capped(mut self) -> Self {
        self.max_field_section_size = self.max_field_section_size.min(VARINT_MAX);
        self.qpack_max_table_capacity = self.qpack_max_table_capacity.min(VARINT_MAX);
        let most = usize::try_from(VARINT_MAX).unwrap_or(usize::MAX);
        self.qpack_blocked_streams = self.qpack_blocked_streams.min(most);
        self.max_webtransport_sessions = self.max_webtransport_sessions.min(most);
        self
    }

    /// Whether a server accepts extended CONNECT.
    pub(crate) fn has_connect_protocol(&self) -> bool {
        self.enable_connect_protocol || self.has_webtransport()
    }

    /// Whether HTTP datagrams are taken.
    pub(crate) fn has_datagrams(&self) -> bool {
        self.enable_datagrams || self.has_webtransport()
    }

    /// Whether there is WebTransport.
    pub(crate) fn has_webtransport(&self) -> bool {
        self.max_webtransport_sessions > 0
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_field_section_size: 64 << 10,
            max_requests: 1024,
            max_buffered_headers: 1 << 20,
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
            enable_connect_protocol: false,
            origins: Vec::new(),
            enable_datagrams: false,
            max_webtransport_sessions: 0,
            grease: true,
            useless_allowance: 1000,
            useless_per_second: 16,
            abandoned_allowance: 256,
            abandoned_per_second: 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_is_not_allowed() {
        let config = Config {
            qpack_max_table_capacity: u64::MAX,
            max_field_section_size: u64::MAX,
            ..Config::default()
        };
        let capped = config.capped();
        assert_eq!(
            (capped.qpack_max_table_capacity, capped.max_field_section_size),
            (VARINT_MAX, VARINT_MAX)
        );
        assert_eq!(Config::default().capped().qpack_max_table_capacity, 4096);
    }
}
