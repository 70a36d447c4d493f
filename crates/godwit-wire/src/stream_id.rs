//! Stream ids (RFC 9000 section 2.1).

use std::fmt;

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The end that sent the first packet.
    Client,
    /// The end that answered.
    Server,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// Whether a stream carries data one way or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Both ends send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

/// A stream id: initiator, direction and a running index in one number below 2^62.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// The `index`-th stream (from 0) that `initiator` opens in `direction`. Indices above 2^60 - 1
    /// do not exist and wrap.
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        StreamId((index << 2 & crate::codec::VARINT_MAX) | (direction as u64) << 1 | initiator as u64)
    }

    /// From the number on the wire.
    pub const fn from_u64(id: u64) -> Self {
        StreamId(id)
    }

    /// The number on the wire.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Who opened it.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Which way it carries data.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
    }

    /// Its running index among streams of the same initiator and direction, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({})", self.0)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 table 1.
    #[test]
    fn the_two_lowest_bits_are_the_type() {
        let types = [
            (Side::Client, Direction::Bidirectional),
            (Side::Server, Direction::Bidirectional),
            (Side::Client, Direction::Unidirectional),
            (Side::Server, Direction::Unidirectional),
        ];
        for (number, (initiator, direction)) in (0..).zip(types) {
            for index in [0, 1, 2, 1 << 30, (1 << 60) - 1] {
                let id = StreamId::new(initiator, direction, index);
                assert_eq!((id.as_u64(), id), (index << 2 | number, StreamId::from_u64(index << 2 | number)));
                assert_eq!((id.initiator(), id.direction(), id.index()), (initiator, direction, index));
                assert_eq!(id.to_string(), (index << 2 | number).to_string());
                assert_eq!(format!("{id:?}"), format!("StreamId({id})"));
            }
            assert_eq!(StreamId::new(initiator, direction, 1 << 60).as_u64(), number, "there are no more");
        }
        assert_eq!((Side::Client.peer(), Side::Server.peer()), (Side::Server, Side::Client));
    }
}
