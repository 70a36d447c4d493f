//! What an application has its callbacks called with.

use std::ffi::c_void;
use std::ptr::null_mut;

/// A pointer of the application's, which is handed back to it and never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context(*mut c_void);

// SAFETY: it is a number to this library. What is behind it, and on which threads, is the application's concern, which
// knows that its callbacks come on threads of the library's.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Of an application that has given none.
    pub(crate) const NONE: Self = Self(null_mut());

    /// Keeps a pointer.
    pub(crate) const fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }

    /// The pointer.
    pub(crate) const fn pointer(self) -> *mut c_void {
        self.0
    }
}
