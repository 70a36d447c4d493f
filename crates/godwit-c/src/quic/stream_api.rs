//! The functions for streams.

use super::stream::{Command, Stream};
use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles;
use std::ffi::c_void;
use std::sync::Arc;

/// A stream on which this side sends.
fn sending(stream: u64) -> Result<Arc<Stream>, Failure> {
    let stream = handles::get::<Stream>(stream)?;
    let wrong = || Failure::new(abi::ERROR_STATE, "only the peer sends on this stream");
    if stream.sends { Ok(stream) } else { Err(wrong()) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_stream_send(
    stream: u64,
    data: *const c_void,
    length: u64,
    flags: u32,
    tag: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let stream = sending(stream)?;
        given::flags(flags, abi::SEND_END | abi::SEND_REPORT, "godwit_stream_send")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { given::bytes(data, length, "data") }?;
        stream.outbox.send(bytes, flags, tag)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_stream_reset(stream: u64, code: u64, error: *mut abi::Error) -> i32 {
    let act = || {
        sending(stream)?.command(Command::Reset(given::code(code)?));
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_stream_stop(stream: u64, code: u64, error: *mut abi::Error) -> i32 {
    let act = || {
        let stream = handles::get::<Stream>(stream)?;
        if !stream.receives {
            return Err(Failure::new(abi::ERROR_STATE, "only this side sends on this stream"));
        }
        stream.stop(given::code(code)?);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_stream_set_priority(
    stream: u64,
    urgency: u32,
    incremental: u32,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let stream = sending(stream)?;
        let wrong = || Failure::argument(format!("the urgency is {urgency}, expected 0 to 7"));
        let urgency = u8::try_from(urgency).ok().filter(|urgency| *urgency <= 7).ok_or_else(wrong)?;
        stream.command(Command::Priority(urgency, incremental != 0));
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
