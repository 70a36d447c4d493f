//! Opening and closing the library, and what belongs to no handle.

use super::TABLE;
use crate::abi::{API_VERSION_2, Execution, ExecutionConfig, GlobalExecutionConfigFlags, Status};
use crate::worker::pool;
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
    Status::SUCCESS
}

/// Closes the library. What is to be given back was given back with the handles.
///
/// In C: `MsQuicClose`.
pub fn close(_table: *const c_void) {}

pub(super) unsafe extern "C" fn execution_create(
    _flags: GlobalExecutionConfigFlags,
    _polling_idle_timeout_us: u32,
    _count: u32,
    _configs: *mut ExecutionConfig,
    _executions: *mut *mut Execution,
) -> Status {
    // Once there are threads, there can be no others.
    if pool().is_some() {
        return Status::INVALID_STATE;
    }
    Status::NOT_SUPPORTED
}

pub(super) unsafe extern "C" fn execution_delete(_count: u32, _executions: *mut *mut Execution) {}

pub(super) unsafe extern "C" fn execution_poll(_execution: *mut Execution) -> u32 {
    u32::MAX
}
