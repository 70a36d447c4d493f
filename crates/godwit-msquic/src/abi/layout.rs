//! What a C compiler has to see of each type and constant, and the macros by which they are declared.
//!
//! Every size and offset is written down where a type is declared, and asserted when the crate is compiled. The same
//! tables make the C program of the crate's tests, which asks a C compiler for all of it.

/// How a type lies in memory, under the names that C has for it.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The type's name in C.
    pub c_name: &'static str,
    /// Bytes of the whole type.
    pub size: usize,
    /// Its members.
    pub fields: &'static [Field],
    /// Its bit-fields.
    pub bits: &'static [Bits],
}

/// A member of a type.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The way to it in C, with dots where members lie in one another.
    pub c_name: &'static str,
    /// Bytes before it.
    pub offset: usize,
    /// Bytes of its own.
    pub size: usize,
}

/// A bit-field of a type.
#[derive(Debug, Clone, Copy)]
pub struct Bits {
    /// The way to it in C.
    pub c_name: &'static str,
    /// The number of its lowest bit, counted from the beginning of the type.
    pub first: usize,
    /// How many bits it has.
    pub width: usize,
}

/// Constants that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Constants {
    /// The name in C of the type that they are values of, if they have one.
    pub c_type: &'static str,
    /// Bytes of a value of that type.
    pub size: usize,
    /// Their names in C, and what they are.
    pub values: &'static [(&'static str, u64)],
}

impl Constants {
    /// The name in C of the first constant that has this value.
    pub fn name_of(&self, value: u64) -> Option<&'static str> {
        self.values.iter().find(|(_, known)| *known == value).map(|(name, _)| *name)
    }

    /// The constant of this name in C.
    pub fn value_of(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Bytes of the member that such a function sets, which nobody calls.
pub(super) const fn size_of_field<T, F>(_: fn(&mut T, F)) -> usize {
    size_of::<F>()
}

/// The number of a bit of the member at this offset, counted from the beginning of the type.
pub(super) const fn bit_number(offset: usize, bit_of_member: usize) -> usize {
    offset.saturating_mul(8).saturating_add(bit_of_member)
}

/// The layout of a type: its name in C and size; then every member, its name in C and its offset; then its bit-fields,
/// each with the member that holds it, its lowest bit in there and its width.
macro_rules! layout {
    ($type:ty, $c_name:literal, $size:literal {
        $($($field:ident).+, $field_name:literal, $offset:literal;)*
    } $(bits {
        $($bits_name:literal, $($holder:ident).+, $shift:expr, $width:literal;)*
    })?) => {
        impl $type {
            /// How it lies in memory.
            pub const LAYOUT: $crate::abi::layout::Layout = $crate::abi::layout::Layout {
                c_name: $c_name,
                size: size_of::<Self>(),
                fields: &[$($crate::abi::layout::Field {
                    c_name: $field_name,
                    offset: std::mem::offset_of!($type, $($field).+),
                    size: $crate::abi::layout::size_of_field(|it: &mut $type, value| it.$($field).+ = value),
                }),*],
                bits: &[$($($crate::abi::layout::Bits {
                    c_name: $bits_name,
                    first: $crate::abi::layout::bit_number(
                        std::mem::offset_of!($type, $($holder).+),
                        $shift as usize,
                    ),
                    width: $width,
                }),*)?],
            };
        }
        const _: () = assert!(size_of::<$type>() == $size, $c_name);
        $(const _: () = assert!(std::mem::offset_of!($type, $($field).+) == $offset, $field_name);)*
    };
}

/// A type whose values have names, of which C knows no others, though any number may come.
macro_rules! codes {
    ($(#[$attribute:meta])* $name:ident($number:ty), $c_name:literal {
        $($(#[$note:meta])* $value:ident = $is:expr, $value_name:literal;)*
    }) => {
        $(#[$attribute])*
        #[doc = concat!("\n\nIn C: `", $c_name, "`.")]
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            $($(#[$note])* #[doc = concat!("\n\nIn C: `", $value_name, "`.")]
            pub const $value: Self = Self($is);)*

            /// All of them, under their names in C.
            pub const CONSTANTS: $crate::abi::layout::Constants = $crate::abi::layout::Constants {
                c_type: $c_name,
                size: size_of::<Self>(),
                values: &[$(($value_name, Self::$value.0 as u64)),*],
            };

            /// The name of this value in C, if it has one.
            pub fn c_name(self) -> Option<&'static str> {
                Self::CONSTANTS.name_of(self.0.into())
            }
        }
    };
}

/// A type whose values are bits that are set together.
macro_rules! flags {
    ($(#[$attribute:meta])* $name:ident($number:ty), $c_name:literal { $($rest:tt)* }) => {
        $crate::abi::layout::codes! { $(#[$attribute])* $name($number), $c_name { $($rest)* } }

        impl $name {
            /// Whether all bits of the other are set in this one.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The bits of either.
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Its bits that C has no name for.
            pub fn unknown(self) -> $number {
                let known = Self::CONSTANTS.values.iter().fold(0, |known, (_, value)| known | value);
                self.0 & !(known as $number)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }
    };
}

/// Constants of one type that are nothing but numbers, and the table of them.
macro_rules! numbers {
    ($(#[$attribute:meta])* $table:ident: $type:ty {
        $($(#[$note:meta])* $value:ident = $is:expr, $value_name:literal;)*
    }) => {
        $($(#[$note])* #[doc = concat!("\n\nIn C: `", $value_name, "`.")]
        pub const $value: $type = $is;)*

        $(#[$attribute])*
        pub const $table: $crate::abi::layout::Constants = $crate::abi::layout::Constants {
            c_type: "",
            size: 0,
            values: &[$(($value_name, $value as u64)),*],
        };
    };
}

/// Single bits of a member that C reads by names: the number of each in it, and what reads and sets it.
macro_rules! bits {
    ($type:ty, $holder:ident { $($(#[$note:meta])* $number:ident = $shift:literal, $is:ident, $with:ident;)* }) => {
        impl $type {
            $(
                #[doc = concat!("The number of the bit of [`", stringify!($is), "`](Self::", stringify!($is), ").")]
                pub const $number: u32 = $shift;

                $(#[$note])*
                pub const fn $is(&self) -> bool {
                    self.$holder & (1 << $shift) != 0
                }

                #[doc = concat!("The same with what [`", stringify!($is), "`](Self::", stringify!($is), ") says.")]
                pub const fn $with(mut self, yes: bool) -> Self {
                    self.$holder &= !(1 << $shift);
                    if yes {
                        self.$holder |= 1 << $shift;
                    }
                    self
                }
            )*
        }
    };
}

pub(super) use {bits, codes, flags, layout, numbers};
