//! Parameters: what can be read and set of the library and of each kind of handle, by a number of 32 bits.
//!
//! The six lowest bits of the highest byte say of what kind of handle a parameter is ([`Level`]), its highest bit that
//! it is private, and the bit below that it is wanted before other work. Each says what can be done with it (get, set)
//! and the type of its value.

mod private;
mod public;

pub use private::*;
pub use public::*;

use super::layout::numbers;

/// The parts of a number that say of what kind it is.
const LEVEL_MASK: u32 = 0x3f00_0000;

/// Which parameter.
///
/// In C: `uint32_t`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(pub u32);

/// Of what a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Of the library; the handle is null.
    Global,
    /// Of a registration; there are none.
    Registration,
    /// Of a configuration.
    Configuration,
    /// Of a listener.
    Listener,
    /// Of a connection.
    Connection,
    /// Of the TLS of a connection.
    Tls,
    /// Of the TLS of a connection on Windows.
    TlsSchannel,
    /// Of a stream.
    Stream,
}

numbers! {
    /// What the numbers of each level begin with, and what else is in them.
    PREFIXES: u32 {
        /// Of the library.
        PREFIX_GLOBAL = 0x0100_0000, "QUIC_PARAM_PREFIX_GLOBAL";
        /// Of registrations.
        PREFIX_REGISTRATION = 0x0200_0000, "QUIC_PARAM_PREFIX_REGISTRATION";
        /// Of configurations.
        PREFIX_CONFIGURATION = 0x0300_0000, "QUIC_PARAM_PREFIX_CONFIGURATION";
        /// Of listeners.
        PREFIX_LISTENER = 0x0400_0000, "QUIC_PARAM_PREFIX_LISTENER";
        /// Of connections.
        PREFIX_CONNECTION = 0x0500_0000, "QUIC_PARAM_PREFIX_CONNECTION";
        /// Of TLS.
        PREFIX_TLS = 0x0600_0000, "QUIC_PARAM_PREFIX_TLS";
        /// Of TLS on Windows.
        PREFIX_TLS_SCHANNEL = 0x0700_0000, "QUIC_PARAM_PREFIX_TLS_SCHANNEL";
        /// Of streams.
        PREFIX_STREAM = 0x0800_0000, "QUIC_PARAM_PREFIX_STREAM";
        /// It is wanted before other work of the connection. Goes with any parameter.
        HIGH_PRIORITY = 0x4000_0000, "QUIC_PARAM_HIGH_PRIORITY";
        /// It is private.
        PREFIX_PRIVATE = 0x8000_0000, "QUIC_PARAM_PREFIX_PRIVATE";
    }
}

impl ParameterId {
    /// Of what it is, if that is known.
    pub const fn level(self) -> Option<Level> {
        match self.0 & LEVEL_MASK {
            PREFIX_GLOBAL => Some(Level::Global),
            PREFIX_REGISTRATION => Some(Level::Registration),
            PREFIX_CONFIGURATION => Some(Level::Configuration),
            PREFIX_LISTENER => Some(Level::Listener),
            PREFIX_CONNECTION => Some(Level::Connection),
            PREFIX_TLS => Some(Level::Tls),
            PREFIX_TLS_SCHANNEL => Some(Level::TlsSchannel),
            PREFIX_STREAM => Some(Level::Stream),
            _ => None,
        }
    }

    /// Whether it is of the library. In C: `QUIC_PARAM_IS_GLOBAL`.
    pub const fn is_global(self) -> bool {
        matches!(self.level(), Some(Level::Global))
    }

    /// Whether it is wanted before other work.
    pub const fn is_high_priority(self) -> bool {
        self.0 & HIGH_PRIORITY != 0
    }

    /// The parameter itself, without whether it is wanted before other work.
    pub const fn without_priority(self) -> Self {
        Self(self.0 & !HIGH_PRIORITY)
    }
}

/// Parameters of one kind: constants of [`ParameterId`], and the table of their names in C.
macro_rules! parameters {
    ($(#[$attribute:meta])* $module:ident {
        $($(#[$note:meta])* $value:ident = $is:literal, $value_name:literal;)*
    }) => {
        $(#[$attribute])*
        pub mod $module {
            use super::super::ParameterId;

            $($(#[$note])* #[doc = concat!("\n\nIn C: `", $value_name, "`.")]
            pub const $value: ParameterId = ParameterId($is);)*

            /// All of them, under their names in C.
            pub const ALL: $crate::abi::layout::Constants = $crate::abi::layout::Constants {
                c_type: "",
                size: 0,
                values: &[$(($value_name, $value.0 as u64)),*],
            };
        }
    };
}

use parameters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_of_what_it_is() {
        for (id, level) in [
            (global::SETTINGS, Level::Global),
            (configuration::SETTINGS, Level::Configuration),
            (listener::STATS, Level::Listener),
            (connection::SETTINGS, Level::Connection),
            (tls::HANDSHAKE_INFO, Level::Tls),
            (stream::ID, Level::Stream),
            (private_global::IN_USE, Level::Global),
            (private_connection::FORCE_KEY_UPDATE, Level::Connection),
            (private_stream::RELIABLE_OFFSET_RECV, Level::Stream),
        ] {
            assert_eq!(id.level(), Some(level));
            assert_eq!(ParameterId(id.0 | HIGH_PRIORITY).level(), Some(level));
        }
        assert_eq!(ParameterId(0).level(), None);
        assert_eq!(ParameterId(0x0900_0000).level(), None);
        assert_eq!(ParameterId(0x2100_0000).level(), None);
    }

    #[test]
    fn priority_is_taken_off() {
        let urgent = ParameterId(connection::SETTINGS.0 | HIGH_PRIORITY);
        assert!(urgent.is_high_priority() && !connection::SETTINGS.is_high_priority());
        assert_eq!(urgent.without_priority(), connection::SETTINGS);
        assert!(global::SETTINGS.is_global() && !urgent.is_global());
    }
}
