//! Events: declared once, checked by a mask before anything is computed, read by any consumer.
//!
//! A layer declares what can happen in it with [`events!`](crate::events): names, importance and fields.
//! The declaration becomes an enum of the events, an enum of their kinds with a bit each for a [`Mask`], and
//! a visitor over the fields. A log, a counter or a trace is written against [`Event`] and [`Visitor`], and
//! knows neither the layer nor its fields.
//!
//! Whoever raises an event asks the mask first and builds the event only if the bit is set: an event that
//! nobody wants costs one load and one branch.

use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How much an event matters to somebody who reads a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// Every log should have it.
    Core,
    /// It makes a log easier to read.
    Base,
    /// It is for those who look for something in particular.
    Extra,
}

/// An event of any declaration.
pub trait Event {
    /// What the names of all events of the declaration stand under.
    const NAMESPACE: &'static str;

    /// Its name.
    fn name(&self) -> &'static str;

    /// How much it matters.
    fn importance(&self) -> Importance;

    /// Shows its fields to `visitor`, in the order in which they are declared.
    fn visit(&self, visitor: &mut dyn Visitor);
}

/// What reads the fields of events. In a [list](Visitor::list) the names are empty and mean nothing.
pub trait Visitor {
    /// Yes or no.
    fn flag(&mut self, name: &str, value: bool);

    /// A number.
    fn number(&mut self, name: &str, value: u64);

    /// A span of time.
    fn duration(&mut self, name: &str, value: Duration);

    /// Text.
    fn text(&mut self, name: &str, value: &str);

    /// Bytes that are not text.
    fn bytes(&mut self, name: &str, value: &[u8]);

    /// Fields that belong together: `fields` shows them.
    fn group(&mut self, name: &str, fields: &dyn Fn(&mut dyn Visitor));

    /// Values in order: `items` shows them.
    fn list(&mut self, name: &str, items: &dyn Fn(&mut dyn Visitor));
}

/// The type of a field: it shows itself as one or several values, or not at all.
pub trait Value {
    /// Shows the value to `visitor`. A type that stands for several fields may ignore `name` and show each of
    /// them under a name of its own.
    fn visit(&self, name: &str, visitor: &mut dyn Visitor);
}

impl Value for bool {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.flag(name, *self);
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
                visitor.number(name, *self as u64);
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 usize);

impl Value for Duration {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.duration(name, *self);
    }
}

impl Value for str {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.text(name, self);
    }
}

impl Value for IpAddr {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.text(name, &self.to_string());
    }
}

/// Bytes that are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Value for Bytes<'_> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.bytes(name, self.0);
    }
}

/// Nothing is shown of what is not there.
impl<T: Value> Value for Option<T> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        if let Some(value) = self {
            value.visit(name, visitor);
        }
    }
}

impl<T: Value + ?Sized> Value for &T {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        (**self).visit(name, visitor);
    }
}

impl<T: Value> Value for [T] {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.list(name, &|visitor| self.iter().for_each(|item| item.visit("", visitor)));
    }
}

/// A set of kinds of events of one declaration.
pub struct Mask<K> {
    bits: u64,
    kind: PhantomData<fn(K)>,
}

impl<K> Mask<K> {
    /// No events.
    pub const NONE: Self = Mask::from_bits(0);

    /// Kinds by their bits: the first that is declared has the lowest.
    pub const fn from_bits(bits: u64) -> Self {
        Mask { bits, kind: PhantomData }
    }

    /// The kind declared after `index` others, below 64.
    pub const fn nth(index: u32) -> Self {
        Mask::from_bits(1_u64.wrapping_shl(index))
    }

    /// Its bits.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The kinds of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Mask::from_bits(self.bits | other.bits)
    }

    /// The kinds of this one that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Mask::from_bits(self.bits & !other.bits)
    }

    /// True if they have a kind in common.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.bits & other.bits != 0
    }

    /// True if there is no kind in it.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }
}

impl<K> Clone for Mask<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Mask<K> {}

impl<K> Default for Mask<K> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<K> PartialEq for Mask<K> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}

impl<K> Eq for Mask<K> {}

impl<K> fmt::Debug for Mask<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({:#x})", self.bits)
    }
}

/// Declares the events of a layer.
///
/// ```
/// use godwit_base::event::{Event, Importance};
///
/// godwit_base::events! {
///     /// What happens in a kitchen.
///     #[derive(Debug)]
///     pub enum KitchenEvent<'a> in "kitchen", kinds KitchenEventKind {
///         /// A dish is ready.
///         DishReady = "dish_ready", Core {
///             /// Its name on the menu.
///             dish: &'a str,
///             /// The table that ordered it.
///             table: Option<u16>,
///         }
///         /// The fire went out.
///         FireOut = "fire_out", Base {}
///     }
/// }
///
/// let event = KitchenEvent::DishReady { dish: "soup", table: Some(4) };
/// assert_eq!((event.name(), event.importance()), ("dish_ready", Importance::Core));
/// let wanted = KitchenEventKind::FireOut.mask();
/// assert!(!wanted.intersects(event.kind().mask()));
/// ```
#[macro_export]
macro_rules! events {
    (
        $(#[$meta:meta])*
        $vis:vis enum $event:ident $(<$life:lifetime>)? in $namespace:literal, kinds $kind:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident = $name:literal, $importance:ident {
                    $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)?
                }
            )+
        }
    ) => {
        $(#[$meta])*
        $vis enum $event $(<$life>)? {
            $(
                $(#[$doc])*
                $variant { $($(#[$field_doc])* $field: $type),* },
            )+
        }

        #[doc = concat!("The kinds of [`", stringify!($event), "`].")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $kind {
            $($(#[$doc])* $variant,)+
        }

        impl $kind {
            /// Every kind, in the order of declaration.
            $vis const ALL: &'static [$kind] = &[$($kind::$variant),+];

            /// The bit of this kind.
            $vis const fn mask(self) -> $crate::event::Mask<$kind> {
                $crate::event::Mask::nth(self as u32)
            }

            /// The bits of every kind that matters at least as much as `least`.
            $vis const fn at_least(least: $crate::event::Importance) -> $crate::event::Mask<$kind> {
                let mut mask = $crate::event::Mask::NONE;
                $(
                    if $crate::event::Importance::$importance as u8 <= least as u8 {
                        mask = mask.union($kind::$variant.mask());
                    }
                )+
                mask
            }

            /// The name of the events of this kind.
            $vis const fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)+
                }
            }

            /// How much they matter.
            $vis const fn importance(self) -> $crate::event::Importance {
                match self {
                    $($kind::$variant => $crate::event::Importance::$importance,)+
                }
            }
        }

        // A mask has one bit for each.
        const _: () = assert!($kind::ALL.len() <= 64);

        impl $(<$life>)? $event $(<$life>)? {
            /// What kind of event it is.
            $vis const fn kind(&self) -> $kind {
                match self {
                    $($event::$variant { .. } => $kind::$variant,)+
                }
            }
        }

        impl $(<$life>)? $crate::event::Event for $event $(<$life>)? {
            const NAMESPACE: &'static str = $namespace;

            fn name(&self) -> &'static str {
                self.kind().name()
            }

            fn importance(&self) -> $crate::event::Importance {
                self.kind().importance()
            }

            fn visit(&self, visitor: &mut dyn $crate::event::Visitor) {
                let _ = &visitor;
                match self {
                    $($event::$variant { $($field),* } => {
                        $($crate::event::Value::visit($field, stringify!($field), visitor);)*
                    })+
                }
            }
        }
    };
}

/// Declares a type for fields that take one of a few words.
///
/// ```
/// godwit_base::event_words! {
///     /// How a dish is served.
///     pub enum Serving {
///         /// Cold.
///         Cold = "cold",
///         /// Hot.
///         Hot = "hot",
///     }
/// }
/// assert_eq!(Serving::Hot.as_str(), "hot");
/// ```
#[macro_export]
macro_rules! event_words {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?
    })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            $vis enum $name {
                $($(#[$doc])* $variant,)+
            }

            impl $name {
                /// The word.
                $vis const fn as_str(self) -> &'static str {
                    match self {
                        $($name::$variant => $word,)+
                    }
                }
            }

            impl $crate::event::Value for $name {
                fn visit(&self, name: &str, visitor: &mut dyn $crate::event::Visitor) {
                    visitor.text(name, self.as_str());
                }
            }
        )+
    };
}

/// Declares a type for fields that are a group of fields.
///
/// ```
/// godwit_base::event_group! {
///     /// An order.
///     #[derive(Debug)]
///     pub struct Order<'a> {
///         /// What was ordered.
///         dish: &'a str,
///         /// By whom.
///         table: u16,
///     }
/// }
/// let order = Order { dish: "soup", table: 4 };
/// assert_eq!(order.table, 4);
/// ```
#[macro_export]
macro_rules! event_group {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$doc:meta])* $field:ident: $type:ty),+ $(,)?
    })+) => {
        $(
            $(#[$meta])*
            $vis struct $name $(<$life>)? {
                $($(#[$doc])* $vis $field: $type,)+
            }

            impl $(<$life>)? $crate::event::Value for $name $(<$life>)? {
                fn visit(&self, name: &str, visitor: &mut dyn $crate::event::Visitor) {
                    visitor.group(name, &|visitor| {
                        $($crate::event::Value::visit(&self.$field, stringify!($field), visitor);)+
                    });
                }
            }
        )+
    };
}
