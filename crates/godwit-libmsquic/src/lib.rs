//! The shared library: its two functions, which are `godwit_msquic`'s.
//!
//! Programs that were linked with MsQuic's library ask for them with the version `msquic`. They get it where the linker can
//! put it in; elsewhere they find them without, and the system's loader says so.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use godwit_msquic::abi::Status;
use mimalloc::MiMalloc;
use std::ffi::c_void;

/// The library's own memory, of which a request needs many small pieces for a short time. What is the application's stays with
/// the application: nothing that one has allocated is freed by the other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[cfg(versioned)]
std::arch::global_asm!(
    ".symver MsQuicOpenVersion, MsQuicOpenVersion@@msquic",
    ".symver MsQuicClose, MsQuicClose@@msquic"
);

/// Opens the library: gives away the table of functions of this version, which has to be 2.
///
/// # Safety
/// `table` is null, or there is a place for a pointer.
// SAFETY: nothing else has this name, but the library whose place this one takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsQuicOpenVersion(version: u32, table: *mut *const c_void) -> Status {
    // SAFETY: the caller's promise.
    unsafe { godwit_msquic::open_version(version, table) }
}

/// Closes the library.
// SAFETY: nothing else has this name, but the library whose place this one takes.
#[unsafe(no_mangle)]
pub extern "C" fn MsQuicClose(table: *const c_void) {
    godwit_msquic::close(table);
}
