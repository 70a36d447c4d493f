//! The parts of a connection: the one place where they are listed.
//!
//! From the table at the end follow who takes a frame of the peer, the order in which parts write into a packet, whom
//! an acknowledgement or a loss is told, which deadlines there are, whose news comes first, and what gives memory back.
//! A part is a file that implements [`Part`], and a line there: the name of its field, its type and how it begins, and,
//! if it wants to be told what became of its frames, the name of its tokens and their type.
//!
//! Two kinds of frames stand outside of it, because they do not belong to the connection as a whole, and because
//! neither window nor pacer holds them back. ACK frames are of a packet number space: there are three, and what is
//! acknowledged is of no other, and TIMESTAMP frames only precede them. PATH_CHALLENGE and PATH_RESPONSE are of a path: there are as many as there are paths,
//! and they go on no other. What is in the table is asked once per packet whether it has something for whatever packet
//! is next; those two are asked with the packet's space and path in hand ([`acks`](super::acks),
//! [`PathSet`](crate::path::PathSet)), which no part is to know.

use super::{ack_frequency, announcements, anomalies, ping, timestamps};
use crate::cid::{AnnouncedId, LocalCids, RemoteCids, RetiredId};
use crate::packet::{Buffers, PacketBuilder, Turn};
use crate::part::{NoToken, Part, Silence};
use crate::{Event, Side, TransportConfig, WireError, datagrams, handshake, streams};
use godwit_base::Time;
use godwit_recovery::Outcome;
use godwit_wire::Frame;

/// A packet whose tokens are those of this table.
pub(crate) type Packet<'a> = PacketBuilder<'a, RecoveryToken>;

/// Memory that is used again from call to call, whichever connection sends.
pub(crate) type SendingMemory = Buffers<RecoveryToken>;

/// What one call to send works with.
pub(crate) type Sending<'a> = Turn<'a, RecoveryToken>;

macro_rules! parts {
    (
        fn new($($argument:ident: $type:ty),*);
        $($(#[$doc:meta])* $field:ident: $part:ty = $begin:expr $(=> $variant:ident($token:ty))?;)*
    ) => {
        /// The parts of a connection.
        #[derive(Debug)]
        pub(crate) struct Parts {
            $($(#[$doc])* pub(crate) $field: $part,)*
        }

        /// What a packet carried, in a form small enough to remember until it is acknowledged or lost: the token of the
        /// part that wrote it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum RecoveryToken {
            /// An ACK frame of the packet's own space whose largest packet number was this.
            Ack {
                /// The largest packet number it acknowledged.
                largest: u64,
            },
            $($($variant($token),)?)*
        }

        $($(
            impl From<$token> for RecoveryToken {
                #[inline]
                fn from(token: $token) -> Self {
                    RecoveryToken::$variant(token)
                }
            }
        )?)*

        impl RecoveryToken {
            /// Makes one token of this and of `next`, if they are of one part and it can.
            #[inline]
            pub(crate) fn absorb(&mut self, next: RecoveryToken) -> bool {
                $($(
                    if <$part as Part>::MERGES
                        && let RecoveryToken::$variant(next) = next
                    {
                        return match self {
                            RecoveryToken::$variant(token) => <$part as Part>::merge(token, next),
                            _ => false,
                        };
                    }
                )?)*
                false
            }
        }

        impl From<NoToken> for RecoveryToken {
            fn from(none: NoToken) -> Self {
                match none {}
            }
        }

        impl Parts {
            /// As they begin.
            pub(super) fn new($($argument: $type),*) -> Self {
                Parts { $($field: $begin),* }
            }

            /// A frame of the peer to the part that owns it. One that is nobody's says nothing.
            #[inline]
            pub(crate) fn on_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), WireError> {
                $(if let Some(taken) = Part::on_frame(&mut self.$field, now, frame) {
                    return taken;
                })*
                Ok(())
            }

            /// True if any part has something to write.
            #[inline]
            pub(crate) fn want_to_send(&self) -> bool {
                $(Part::wants_to_send(&self.$field))||*
            }

            /// Every part writes what is due and fits.
            #[inline]
            fn write_each(&mut self, packet: &mut Packet<'_>) {
                $(if Part::wants_to_send(&self.$field) {
                    Part::write_frames(&mut self.$field, packet);
                })*
            }

            /// What became of something that a part wrote. [`RecoveryToken::Ack`] belongs to none.
            #[inline]
            pub(crate) fn on_outcome(&mut self, outcome: Outcome, token: RecoveryToken) {
                match token {
                    RecoveryToken::Ack { .. } => {}
                    $($(
                        RecoveryToken::$variant(token) => Part::on_outcome(&mut self.$field, outcome, token),
                    )?)*
                }
            }

            /// What a part wrote is to be sent again, to probe the path.
            pub(crate) fn repeat(&mut self, token: RecoveryToken) {
                match token {
                    RecoveryToken::Ack { .. } => {}
                    $($(
                        RecoveryToken::$variant(token) => Part::repeat(&mut self.$field, token),
                    )?)*
                }
            }

            /// When [`Parts::on_timeout`] is to be called at the latest.
            #[inline]
            pub(crate) fn deadline(&self, silence: &Silence) -> Option<Time> {
                [$(Part::deadline(&self.$field, silence)),*].into_iter().flatten().min()
            }

            /// Time has passed: every part that is due is told.
            pub(crate) fn on_timeout(&mut self, now: Time, silence: &Silence) {
                $(if Part::deadline(&self.$field, silence).is_some_and(|at| at <= now) {
                    Part::on_timeout(&mut self.$field, now);
                })*
            }

            /// The next thing the application is to know.
            pub(crate) fn next_event(&mut self) -> Option<Event> {
                $(if let Some(event) = Part::next_event(&mut self.$field) {
                    return Some(event);
                })*
                None
            }

            /// The connection is over.
            pub(crate) fn on_closed(&mut self) {
                $(Part::on_closed(&mut self.$field);)*
            }

            /// Gives back memory that is not in use.
            pub(crate) fn release_memory(&mut self) {
                $(Part::release_memory(&mut self.$field);)*
            }
        }
    };
}

parts! {
    fn new(side: Side, config: &TransportConfig, tls: handshake::Handshake, ours: LocalCids, theirs: RemoteCids);
    /// How often acknowledgements are sent: ACK_FREQUENCY and IMMEDIATE_ACK.
    ack_frequency: ack_frequency::AckFrequency = Default::default() => AckFrequency(ack_frequency::RequestToken);
    /// What a server says once: HANDSHAKE_DONE and NEW_TOKEN.
    announcements: announcements::Announcements = Default::default() => Announcement(announcements::AnnouncementToken);
    /// PING.
    ping: ping::Ping = Default::default();
    /// TLS: CRYPTO.
    handshake: handshake::Handshake = tls => Crypto(handshake::CryptoToken);
    /// The connection ids of this end: NEW_CONNECTION_ID.
    local_cids: LocalCids = ours => NewConnectionId(AnnouncedId);
    /// The connection ids of the peer: RETIRE_CONNECTION_ID.
    remote_cids: RemoteCids = theirs => RetireConnectionId(RetiredId);
    /// Streams: STREAM, and the frames about them and about flow control.
    streams: streams::Streams = streams::Streams::new(side, config) => Stream(streams::StreamToken);
    /// Unreliable datagrams: DATAGRAM.
    datagrams: datagrams::Datagrams = datagrams::Datagrams::new(config.datagrams) => Datagram(datagrams::DatagramToken);
    /// What the ends tell one another of their clocks: TIMESTAMP, which goes with ACK.
    clocks: timestamps::Clocks = Default::default();
    /// What frames cost that serve nothing.
    anomalies: anomalies::Anomalies = anomalies::Anomalies::new(config.max_useless_frames);
}

impl Parts {
    /// Every part writes what is due and fits, and what is left of the packet goes to the application's data. `room` is
    /// what a packet of full size has for frames.
    #[inline]
    pub(crate) fn write(&mut self, packet: &mut Packet<'_>, room: impl FnOnce(&Self) -> usize) {
        self.write_each(packet);
        let streams = self.streams.interest().data;
        if self.datagrams.wants_to_send() {
            let room = room(self);
            self.write_shared(streams, room, packet);
        } else if streams {
            self.streams.write_data(packet);
        }
    }

    /// What goes into 0-RTT packets: what the streams have to say and nothing else (RFC 9000 section 12.5).
    pub(crate) fn write_early(&mut self, packet: &mut Packet<'_>) {
        Part::write_frames(&mut self.streams, packet);
        self.streams.write_data(packet);
    }

    /// Datagrams and, if there is any, stream data in one packet, in the order that their shares demand.
    fn write_shared(&mut self, streams: bool, room: usize, packet: &mut Packet<'_>) {
        if !streams {
            self.datagrams.write_data(room, packet);
            return;
        }
        // Stream data comes last where it can: its last frame may go without a length.
        let (sent, of_streams) = if self.datagrams.give_way() {
            let of_streams = self.streams.write_data(packet);
            (self.datagrams.write_data(room, packet), of_streams)
        } else {
            let sent = self.datagrams.write_data(room, packet);
            (sent, self.streams.write_data(packet))
        };
        self.datagrams.on_shared(sent, of_streams);
    }
}

#[cfg(test)]
mod tests {
    use super::announcements::AnnouncementToken;
    use super::streams::StreamToken;
    use super::*;
    use godwit_wire::StreamId;

    fn data(id: u64, offset: u64, len: u32, fin: bool) -> RecoveryToken {
        StreamToken::Data { id: StreamId::from_u64(id), offset, len, fin }.into()
    }

    #[test]
    fn tokens_are_no_larger_than_those_of_streams() {
        assert!(size_of::<RecoveryToken>() <= 24, "{}", size_of::<RecoveryToken>());
    }

    #[test]
    fn data_that_follows_on_data_is_told_of_at_once() {
        let mut token = data(4, 100, 20, false);
        assert!(token.absorb(data(4, 120, 5, false)));
        assert!(token.absorb(data(4, 125, 0, true)));
        assert_eq!(token, data(4, 100, 25, true));
    }

    #[test]
    fn other_tokens_stay_apart() {
        let done = || RecoveryToken::Announcement(AnnouncementToken::HandshakeDone);
        for (first, second) in [
            (data(4, 0, 20, false), data(8, 20, 5, false)),
            (data(4, 0, 20, false), data(4, 21, 5, false)),
            (data(4, 20, 20, false), data(4, 0, 20, false)),
            (data(4, 0, 20, true), data(4, 20, 0, true)),
            (data(4, 0, u32::MAX, false), data(4, u64::from(u32::MAX), 1, false)),
            (data(4, 0, 20, false), done()),
            (done(), done()),
        ] {
            let mut token = first;
            assert!(!token.absorb(second), "{first:?} {second:?}");
            assert_eq!(token, first);
        }
    }
}
