//! Sends that own what they send until the library gives it back.

use msquic::{BufferRef, SendFlags, Status, Stream};
use std::ffi::c_void;

struct Pending {
    _bytes: Vec<u8>,
    buffers: [BufferRef; 1],
}

pub fn send(on: &Stream, bytes: Vec<u8>, flags: SendFlags) -> Result<(), Status> {
    let buffers = [BufferRef::from(bytes.as_slice())];
    let pending = Box::into_raw(Box::new(Pending { _bytes: bytes, buffers }));
    // SAFETY: the buffer and what it points to stay where they are until `complete` frees them.
    let sent = unsafe { on.send(&(*pending).buffers, flags, pending.cast::<c_void>()) };
    if sent.is_err() {
        complete(pending.cast::<c_void>());
    }
    sent
}

/// Frees what a send has had, in its SendComplete.
pub fn complete(context: *const c_void) {
    // SAFETY: it is what `send` has given away, and comes back once.
    drop(unsafe { Box::from_raw(context.cast_mut().cast::<Pending>()) });
}
