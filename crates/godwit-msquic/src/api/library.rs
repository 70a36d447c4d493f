//! Opening and closing the library, and what belongs to no handle.

use super::TABLE;
use crate::abi::{API_VERSION_2, Status};
use crate::worker;
use std::ffi::c_void;

/// Opens the library: gives the table of version 2 away, which is the same for all.
///
/// In C: `MsQuicOpenVersion`.
///
/// # Safety
/// `table` is null, or there is a place for a pointer.
pub unsafe fn open_version(version: u32, table: *mut *const c_void) -> Status {
    if table.is_null() {
        return Status::INVALID_PARAMETER;
    }
    if version != API_VERSION_2 {
        return Status::NOT_SUPPORTED;
    }
    // SAFETY: the caller has given a place for a pointer.
    unsafe { table.write((&raw const TABLE).cast()) };
    worker::on_opened();
    Status::SUCCESS
}

/// Closes the library. What is to be given back was given back with the handles.
///
/// In C: `MsQuicClose`.
pub fn close(table: *const c_void) {
    if !table.is_null() {
        worker::on_closed();
    }
}
