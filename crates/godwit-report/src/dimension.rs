//! What a request is classed by, and where each class lies in the tables.
//!
//! The order of the classes is part of the sketch file's format: new classes need a new version of it.

use serde::{Serialize, Serializer};

macro_rules! dimension {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $class:ident = $label:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$note])* #[doc = concat!("\"", $label, "\".")] $class,)+
        }

        impl $name {
            /// Every class, in the order of [`Self::index`].
            pub const ALL: &[$name] = &[$($name::$class),+];
            /// How many classes there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The place of this class, from 0.
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The class in words.
            pub const fn label(self) -> &'static str {
                match self {
                    $($name::$class => $label,)+
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.label())
            }
        }
    };
}

dimension! {
    /// The protocol of a request.
    Protocol {
        /// HTTP/1.0 too.
        Http1 = "HTTP/1.1",
        Http2 = "HTTP/2",
        Http3 = "HTTP/3",
    }
}

dimension! {
    /// The size of the response's body.
    Size {
        UpTo1KiB = "up to 1 KiB",
        UpTo10KiB = "up to 10 KiB",
        UpTo100KiB = "up to 100 KiB",
        UpTo1MiB = "up to 1 MiB",
        Over1MiB = "over 1 MiB",
    }
}

impl Size {
    /// The class of a body of so many bytes.
    pub const fn of(bytes: u64) -> Size {
        match bytes {
            0..=0x400 => Size::UpTo1KiB,
            0x401..=0x2800 => Size::UpTo10KiB,
            0x2801..=0x1_9000 => Size::UpTo100KiB,
            0x1_9001..=0x10_0000 => Size::UpTo1MiB,
            _ => Size::Over1MiB,
        }
    }
}

dimension! {
    /// The IP version by which the client came.
    Family {
        V4 = "IPv4",
        V6 = "IPv6",
        Unknown = "unknown",
    }
}

dimension! {
    /// Whether the request was the first on its connection.
    Reuse {
        First = "first",
        Reused = "reused",
        Unknown = "unknown",
    }
}

dimension! {
    /// How the connection's TLS handshake went.
    Tls {
        Full = "full handshake",
        Resumed = "resumed",
        Unknown = "unknown",
    }
}

dimension! {
    /// The side of a staged roll-out on which the user is: whether HTTP/3 was offered to that user.
    Arm {
        On = "on",
        Off = "off",
        None = "none",
    }
}

dimension! {
    /// Why a request did not come by HTTP/3, as far as the server knows.
    WhyNot {
        NotAdvertised = "not advertised",
        OtherAddress = "other address",
        NoAttempt = "no attempt",
        AttemptFailed = "attempt failed",
        Unknown = "unknown",
    }
}

dimension! {
    /// A time of a request. All count from the arrival of the request's header section at the server.
    Metric {
        /// Until the client had the response, less the upstream's time.
        LastMile = "last-mile latency",
        FirstByte = "time to the first byte",
        LastByte = "time to the last byte",
        Delivered = "time to delivery",
        Upstream = "the upstream's time",
    }
}

/// Hours of the day (UTC).
pub const HOURS: usize = 24;

/// The class of requests that one sketch of the full table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The protocol.
    pub protocol: Protocol,
    /// The response's size.
    pub size: Size,
    /// The IP version.
    pub family: Family,
    /// First or reused connection.
    pub reuse: Reuse,
    /// The side of the roll-out.
    pub arm: Arm,
    /// The hour of the day (UTC), 0 to 23.
    pub hour: u8,
}

impl Cell {
    /// How many cells there are.
    pub const COUNT: usize =
        Protocol::COUNT * Size::COUNT * Family::COUNT * Reuse::COUNT * Arm::COUNT * HOURS;

    /// The place of the cell's sketch.
    pub const fn index(self) -> usize {
        let hour = if (self.hour as usize) < HOURS { self.hour as usize } else { 0 };
        let index = self.protocol.index() * Arm::COUNT + self.arm.index();
        let index = index * Reuse::COUNT + self.reuse.index();
        let index = index * Size::COUNT + self.size.index();
        let index = index * Family::COUNT + self.family.index();
        index * HOURS + hour
    }

    /// Every cell, in the order of their indices.
    pub fn all() -> impl Iterator<Item = Cell> {
        (0..Cell::COUNT).filter_map(|index| {
            let (index, hour) = (index / HOURS, index % HOURS);
            let (index, family) = (index / Family::COUNT, index % Family::COUNT);
            let (index, size) = (index / Size::COUNT, index % Size::COUNT);
            let (index, reuse) = (index / Reuse::COUNT, index % Reuse::COUNT);
            let (protocol, arm) = (index / Arm::COUNT, index % Arm::COUNT);
            Some(Cell {
                protocol: *Protocol::ALL.get(protocol)?,
                size: *Size::ALL.get(size)?,
                family: *Family::ALL.get(family)?,
                reuse: *Reuse::ALL.get(reuse)?,
                arm: *Arm::ALL.get(arm)?,
                hour: u8::try_from(hour).ok()?,
            })
        })
    }
}

/// How many groups of users there are for the intervals: each user's hash belongs to one.
pub const BUCKETS: usize = 200;

/// The class of requests that one sketch of the users' table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCell {
    /// The group of users, below [`BUCKETS`].
    pub bucket: u8,
    /// The protocol.
    pub protocol: Protocol,
    /// The side of the roll-out.
    pub arm: Arm,
    /// First or reused connection.
    pub reuse: Reuse,
    /// The response's size.
    pub size: Size,
}

impl UserCell {
    /// How many cells one group of users has.
    pub const PER_BUCKET: usize = Protocol::COUNT * Arm::COUNT * Reuse::COUNT * Size::COUNT;
    /// How many cells there are.
    pub const COUNT: usize = BUCKETS * Self::PER_BUCKET;

    /// The place of the cell's sketch.
    pub const fn index(self) -> usize {
        let bucket = self.bucket as usize % BUCKETS;
        let index = bucket * Protocol::COUNT + self.protocol.index();
        let index = index * Arm::COUNT + self.arm.index();
        let index = index * Reuse::COUNT + self.reuse.index();
        index * Size::COUNT + self.size.index()
    }

    /// Every cell, in the order of their indices.
    pub fn all() -> impl Iterator<Item = UserCell> {
        (0..UserCell::COUNT).filter_map(|index| {
            let (index, size) = (index / Size::COUNT, index % Size::COUNT);
            let (index, reuse) = (index / Reuse::COUNT, index % Reuse::COUNT);
            let (index, arm) = (index / Arm::COUNT, index % Arm::COUNT);
            let (bucket, protocol) = (index / Protocol::COUNT, index % Protocol::COUNT);
            Some(UserCell {
                bucket: u8::try_from(bucket).ok()?,
                protocol: *Protocol::ALL.get(protocol)?,
                arm: *Arm::ALL.get(arm)?,
                reuse: *Reuse::ALL.get(reuse)?,
                size: *Size::ALL.get(size)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        assert_eq!(Cell::all().count(), Cell::COUNT);
        assert!(Cell::all().enumerate().all(|(index, cell)| cell.index() == index));
        assert_eq!(UserCell::all().count(), UserCell::COUNT);
        assert!(UserCell::all().enumerate().all(|(index, cell)| cell.index() == index));
    }

    #[test]
    fn sizes_end_where_they_say() {
        let cases = [
            (0, Size::UpTo1KiB),
            (1024, Size::UpTo1KiB),
            (1025, Size::UpTo10KiB),
            (10_240, Size::UpTo10KiB),
            (10_241, Size::UpTo100KiB),
            (102_400, Size::UpTo100KiB),
            (102_401, Size::UpTo1MiB),
            (1_048_576, Size::UpTo1MiB),
            (1_048_577, Size::Over1MiB),
        ];
        for (bytes, class) in cases {
            assert_eq!(Size::of(bytes), class, "{bytes}");
        }
    }
}
