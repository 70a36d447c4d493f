//! What was lent to the application with events, until it gives it back.

use crate::abi::{self, Plain};
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use bytes::Bytes;
use godwit_base::Slab;
use godwit_base::slab::Key;
use http::HeaderMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OwnedSemaphorePermit;

static LEASES: Mutex<Slab<Box<Lent>>> = Mutex::new(Slab::new());

/// What an event lends. It is not changed any more once it is shown: what is lent points into it.
#[derive(Default)]
pub(crate) struct Lent {
    pub(crate) bytes: Bytes,
    /// What it counts against as long as it is lent.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    pub(crate) headers: HeaderMap,
    // Large, and few events have one: they are apart, so that the many that bring bytes are small.
    pub(crate) response: Option<Box<abi::Response>>,
    pub(crate) request: Option<Box<abi::RequestHead>>,
    pub(crate) connection: Option<Box<abi::ConnectionInfo>>,
    pub(crate) path: Option<Box<abi::Path>>,
    pub(crate) error: Option<Box<abi::Error>>,
    /// What those structs point to, by [`Lent::keep`].
    texts: Vec<CString>,
    /// The headers as C sees them.
    list: Vec<abi::Header>,
}

// SAFETY: its pointers go to what it has itself, on the heap, and to texts that stay for ever; nobody changes that.
unsafe impl Send for Lent {}

impl Lent {
    /// Keeps a text as long as this, and gives a pointer to it.
    pub(crate) fn keep(&mut self, text: impl Into<Vec<u8>>) -> *const std::ffi::c_char {
        // There are no zero bytes in URLs, methods, paths and hosts.
        let text = CString::new(text).unwrap_or_default();
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }

    /// Has an event point to it.
    pub(crate) fn show(&mut self, event: &mut abi::Event) {
        if !self.bytes.is_empty() {
            (event.data, event.length) = (self.bytes.as_ptr(), self.bytes.len() as u64);
        }
        self.list = self.headers.iter().map(|(name, value)| header(name.as_str(), value)).collect();
        if !self.list.is_empty() {
            (event.headers, event.header_count) = (self.list.as_ptr(), self.list.len() as u64);
        }
        event.response = pointer(self.response.as_deref());
        event.request = pointer(self.request.as_deref());
        event.connection = pointer(self.connection.as_deref());
        event.path = pointer(self.path.as_deref());
        event.error = pointer(self.error.as_deref());
    }
}

fn pointer<T>(it: Option<&T>) -> *const T {
    it.map_or(std::ptr::null(), std::ptr::from_ref)
}

fn header(name: &str, value: &http::HeaderValue) -> abi::Header {
    abi::Header {
        flags: if value.is_sensitive() { abi::HEADER_SENSITIVE } else { 0 },
        name: name.as_ptr().cast(),
        name_length: name.len() as u64,
        value: value.as_bytes().as_ptr().cast(),
        value_length: value.len() as u64,
        ..abi::Header::zeroed()
    }
}

/// Lends something; the number gives it back. It is never zero.
pub(crate) fn begin(lent: Box<Lent>) -> u64 {
    let mut leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
    leases.insert(lent).as_u64().wrapping_add(1)
}

fn end(number: u64) -> Result<(), Failure> {
    let ended = {
        let mut leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
        leases.remove(Key::from_u64(number.wrapping_sub(1)))
    };
    let absent = || {
        let text = format!("nothing is lent as {number:#x}: a copy of this event was released before");
        Failure::new(abi::ERROR_HANDLE, text)
    };
    ended.map(drop).ok_or_else(absent)
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_event_release(event: *mut abi::Event, error: *mut abi::Error) -> i32 {
    let act = || {
        // SAFETY: the caller's promise.
        let mut given = unsafe { given::take(event) }?;
        let number = std::mem::take(&mut given.lease);
        (given.data, given.headers, given.header_count) = (std::ptr::null(), std::ptr::null(), 0);
        (given.response, given.request) = (std::ptr::null(), std::ptr::null());
        (given.connection, given.path, given.error) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
        // SAFETY: as above.
        unsafe { given::give(event, &given) }?;
        if number == 0 { Ok(()) } else { end(number) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_was_lent_is_given_back_once() {
        let mut event = abi::Event::zeroed();
        let mut lent = Box::<Lent>::default();
        lent.bytes = Bytes::from_static(b"bytes");
        lent.headers.insert("x-name", HeaderValue::from_static("value"));
        lent.show(&mut event);
        event.lease = begin(lent);
        assert_eq!((event.length, event.header_count), (5, 1));
        // SAFETY: it was just lent.
        let name = unsafe { std::slice::from_raw_parts((*event.headers).name.cast::<u8>(), 6) };
        assert_eq!(name, b"x-name");
        let mut copy = event;
        let release = |event: &mut abi::Event| {
            // SAFETY: there is one.
            unsafe { godwit_event_release(event, std::ptr::null_mut()) }
        };
        assert_eq!(release(&mut event), abi::OK);
        assert!(event.data.is_null() && event.headers.is_null());
        assert_eq!(release(&mut event), abi::OK, "it has nothing any more");
        assert_eq!(release(&mut copy), abi::ERROR_HANDLE);
        copy.size = 64;
        assert_eq!(release(&mut copy), abi::ERROR_SIZE);
    }
}
