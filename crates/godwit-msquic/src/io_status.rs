//! What the system's errors are told as.

use crate::abi::Status;

/// What a socket that cannot be had is told as.
pub(crate) fn status_of(error: &std::io::Error) -> Status {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::AddrInUse => Status::ADDRESS_IN_USE,
        ErrorKind::AddrNotAvailable => Status::ADDRESS_NOT_AVAILABLE,
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => Status::UNREACHABLE,
        ErrorKind::InvalidInput => Status::INVALID_PARAMETER,
        ErrorKind::OutOfMemory => Status::OUT_OF_MEMORY,
        _ => {
            error.raw_os_error().and_then(|code| code.try_into().ok()).map_or(Status::INTERNAL_ERROR, Status)
        }
    }
}
