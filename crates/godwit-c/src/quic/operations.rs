//! The functions for connections that open and close.

use super::connection::Connection;
use super::stream::Stream;
use super::streaming;
use crate::abi;
use crate::border::call;
use crate::given;
use crate::handles;
use crate::subject::Subject;
use std::ffi::c_char;
use std::sync::Arc;

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_shutdown(
    connection: u64,
    code: u64,
    reason: *const c_char,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let connection = handles::get::<Connection>(connection)?;
        // SAFETY: the caller's promise.
        let reason = unsafe { given::text_if_any(reason, "the reason") }?.unwrap_or_default();
        connection.shut_down(given::code(code)?, reason.as_bytes());
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_open(
    connection: u64,
    flags: u32,
    tag: u64,
    stream: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(stream, "the place for the stream's handle")?;
        let connection = handles::get::<Connection>(connection)?;
        given::flags(flags, abi::STREAM_UNIDIRECTIONAL, "a stream")?;
        connection.check_open()?;
        let receives = flags & abi::STREAM_UNIDIRECTIONAL == 0;
        let made = handles::insert(|handle| {
            let subject = Subject::of(&connection.subject, handle, tag);
            Arc::new(Stream::new(subject, connection.limits, true, receives))
        })?;
        connection.runtime.spawn(streaming::open(Arc::clone(&made), Arc::clone(&connection)));
        // SAFETY: the caller's promise.
        unsafe { given::put(stream, made.subject.handle, "the place for the stream's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
