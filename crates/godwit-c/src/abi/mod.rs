//! What both sides agree on to the byte: the structs and numbers of `godwit.h`.
//!
//! Every struct begins with its size, has no padding, and may be all zeros. How large each is stands here once more, so that
//! one that changes by accident is not compiled; that C sees the same is what the tests of this module ask a C compiler.

mod numbers;
mod structs;
#[cfg(test)]
mod tests;

pub(crate) use numbers::*;
pub(crate) use structs::*;

/// A struct of the header.
///
/// # Safety
/// It is `repr(C)`, its first four bytes are its size as `u32`, and all bytes zero are a value of it.
pub(crate) unsafe trait Plain: Copy {
    /// How it is called in C.
    const NAME: &'static str;
    /// Bytes that it has at least, in any version of the header.
    const LEAST: usize;

    /// All zeros but the size.
    fn zeroed() -> Self {
        // SAFETY: all zeros are a value, and the size is where it begins.
        unsafe {
            let mut it: Self = std::mem::zeroed();
            (&raw mut it).cast::<u32>().write(size_of::<Self>() as u32);
            it
        }
    }
}
