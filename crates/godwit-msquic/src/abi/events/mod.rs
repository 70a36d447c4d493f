//! Events: what a callback is told. Each is a type and what belongs to that type, which begins at byte 8.
//!
//! Some members are answers: the callback leaves something there. They are read by the function of the event's name
//! after the callback has returned.

mod connection;
mod listener;
mod stream;

pub use connection::*;
pub use listener::*;
pub use stream::*;

/// An event: its type, the union of what belongs to each type, and for each event how it is made and read.
///
/// `raw` is what the union is before a member is put in, as many numbers of 64 bits as it is long.
macro_rules! events {
    ($(#[$attribute:meta])* $event:ident, $kind:ident, $(#[$union_attribute:meta])* $data:ident, $words:literal {
        $($(#[$note:meta])* $member:ident: $payload:ty = $code:ident, $read:ident;)*
    } and {
        $($(#[$bare_note:meta])* $bare:ident = $bare_code:ident;)*
    }) => {
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $event {
            kind: $kind,
            data: $data,
        }

        $(#[$union_attribute])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        union $data {
            raw: [u64; $words],
            $($member: $payload,)*
        }

        impl $event {
            /// What kind of event it is.
            pub const fn kind(&self) -> $kind {
                self.kind
            }

            $($(#[$note])*
            pub const fn $member(payload: $payload) -> Self {
                let mut data = $data { raw: [0; $words] };
                data.$member = payload;
                Self { kind: $kind::$code, data }
            }

            #[doc = concat!("What belongs to the event, if it is [`", stringify!($code), "`](", stringify!($kind), "::", stringify!($code), ").")]
            pub fn $read(&self) -> Option<$payload> {
                // SAFETY: all of the union was set when the event was made, this member last where the kind is this
                // one. Members are numbers and pointers, for which any bits will do that a callback leaves there.
                (self.kind == $kind::$code).then(|| unsafe { self.data.$member })
            })*

            $($(#[$bare_note])*
            pub const fn $bare() -> Self {
                Self { kind: $kind::$bare_code, data: $data { raw: [0; $words] } }
            })*
        }

        impl std::fmt::Debug for $event {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.kind.c_name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:?}", self.kind),
                }
            }
        }
    };
}

use events;
