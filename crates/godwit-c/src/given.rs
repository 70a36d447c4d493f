//! What the application gives: structs of this or another version, arrays of them, text and bytes. All of it is looked at
//! before it is used, as far as that can be done.

use crate::abi::{self, Plain};
use crate::failure::Failure;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::time::Duration;

/// No version of a struct will be longer.
const LONGEST: usize = 1 << 16;
/// Elements of a list, at most.
const MOST_ELEMENTS: u64 = 1 << 16;

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is NULL; point to one"))
}

fn aligned<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    match (pointer.is_null(), pointer.is_aligned()) {
        (true, _) => Err(null(what)),
        (_, false) => Err(Failure::argument(format!("{what} is not where such a thing can begin"))),
        (false, true) => Ok(()),
    }
}

/// How long the application says that a struct is.
///
/// # Safety
/// It is null, or there are four bytes at least.
pub(crate) unsafe fn room<T: Plain>(pointer: *const T) -> Result<usize, Failure> {
    aligned(pointer, T::NAME)?;
    // SAFETY: the caller's promise; the size is the first thing in it.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if (T::LEAST..=LONGEST).contains(&size) {
        return Ok(size);
    }
    let (name, least) = (T::NAME, T::LEAST);
    let text = format!("the size of {name} is {size}, expected {least} at least; set it to sizeof({name})");
    Err(Failure::new(abi::ERROR_SIZE, text))
}

/// Reads a struct: what it does not have is zero.
///
/// # Safety
/// It is null, or as long as its size says.
pub(crate) unsafe fn take<T: Plain>(pointer: *const T) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let size = unsafe { room(pointer) }?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let unknown = bytes.get(size_of::<T>()..).unwrap_or_default();
    if unknown.iter().any(|byte| *byte != 0) {
        let text = format!(
            "{} has {size} bytes, and what comes after the {} that this version knows is not zero; use a newer library",
            T::NAME,
            size_of::<T>()
        );
        return Err(Failure::new(abi::ERROR_SIZE, text));
    }
    let mut it = T::zeroed();
    // SAFETY: both have so many bytes, and any of the application's are a value: of numbers, pointers that are only followed
    // when they were looked at, and bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut it).cast(), size.min(size_of::<T>()))
    };
    Ok(it)
}

/// As [`take`], with the defaults where there is none.
///
/// # Safety
/// As [`take`].
pub(crate) unsafe fn take_or_default<T: Plain>(pointer: *const T) -> Result<T, Failure> {
    if pointer.is_null() {
        return Ok(T::zeroed());
    }
    // SAFETY: the caller's promise.
    unsafe { take(pointer) }
}

/// Writes a struct, as much of it as there is room for: what is beyond this version is zero, its size is as it was.
///
/// # Safety
/// It is null, or as long as its size says.
pub(crate) unsafe fn give<T: Plain>(pointer: *mut T, value: &T) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let size = unsafe { room(pointer) }?;
    // SAFETY: the caller's promise.
    unsafe { write(pointer, size, value) };
    Ok(())
}

/// # Safety
/// There are `size` bytes.
unsafe fn write<T: Plain>(pointer: *mut T, size: usize, value: &T) {
    let known = size.min(size_of::<T>());
    // SAFETY: there are so many bytes, at both places.
    unsafe {
        let place = pointer.cast::<u8>();
        std::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>(), place, known);
        place.add(known).write_bytes(0, size.saturating_sub(known));
        place.cast::<u32>().write(size as u32);
    }
}

/// An array of the application's to write to.
pub(crate) struct Places<T> {
    first: *mut T,
    distance: usize,
    capacity: usize,
}

impl<T: Plain> Places<T> {
    /// An array whose first element says how long each is.
    ///
    /// # Safety
    /// There are `capacity` elements so long, which stay as long as this is used.
    pub(crate) unsafe fn of(first: *mut T, capacity: u64) -> Result<Places<T>, Failure> {
        if capacity == 0 {
            return Ok(Places { first, distance: 0, capacity: 0 });
        }
        // SAFETY: the caller's promise.
        let distance = unsafe { room(first) }?;
        if !distance.is_multiple_of(align_of::<T>()) {
            let text = format!("the size of {} is {distance}, which is not that of a struct", T::NAME);
            return Err(Failure::new(abi::ERROR_SIZE, text));
        }
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX).min(isize::MAX as usize / LONGEST);
        Ok(Places { first, distance, capacity })
    }

    /// How many elements it has.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Writes one element; nothing if there is none of this number.
    pub(crate) fn put(&self, number: usize, value: &T) {
        if number >= self.capacity {
            return;
        }
        // SAFETY: it is one of the elements, as the maker promised.
        unsafe {
            let place = self.first.cast::<u8>().add(number.saturating_mul(self.distance)).cast::<T>();
            write(place, self.distance, value);
        }
    }
}

/// Writes a plain value.
///
/// # Safety
/// It is null, or there is a place for one.
pub(crate) unsafe fn put<T: Copy>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    aligned(place, what)?;
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// That there is a place to write to, before anything is done whose outcome would be lost.
pub(crate) fn place<T>(place: *mut T, what: &str) -> Result<(), Failure> {
    aligned(place, what)
}

/// Text, or nothing.
///
/// # Safety
/// It is null, or ends with a zero byte, and stays as it is as long as it is used.
pub(crate) unsafe fn text_if_any<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text =
        text.to_str().map_err(|_| Failure::argument(format!("{what} is not UTF-8; give it as UTF-8")))?;
    Ok(Some(text))
}

/// Text.
///
/// # Safety
/// As [`text_if_any`].
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    unsafe { text_if_any(text, what) }?.ok_or_else(|| null(what))
}

/// The name of a file, or nothing.
///
/// # Safety
/// As [`text_if_any`].
pub(crate) unsafe fn file(name: *const c_char, what: &str) -> Result<Option<PathBuf>, Failure> {
    // SAFETY: the caller's promise.
    Ok(unsafe { text_if_any(name, what) }?.map(PathBuf::from))
}

/// A list of texts.
///
/// # Safety
/// It is null, or there are `count` texts as [`text`] wants them.
pub(crate) unsafe fn texts(
    list: *const *const c_char,
    count: u64,
    what: &str,
) -> Result<Vec<String>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let count = elements(count, what)?;
    aligned(list, what)?;
    // SAFETY: the caller's promise.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    // SAFETY: the caller's promise.
    list.iter().map(|one| Ok(unsafe { text(*one, what) }?.to_owned())).collect()
}

fn elements(count: u64, what: &str) -> Result<usize, Failure> {
    if count > MOST_ELEMENTS {
        let text = format!("{what} has {count} elements, expected {MOST_ELEMENTS} at most");
        return Err(Failure::argument(text));
    }
    Ok(count as usize)
}

/// Bytes, as a copy.
///
/// # Safety
/// It is null, or there are so many bytes.
pub(crate) unsafe fn bytes(data: *const c_void, length: u64, what: &str) -> Result<Bytes, Failure> {
    // SAFETY: the caller's promise.
    Ok(Bytes::copy_from_slice(unsafe { slice(data.cast(), length, what) }?))
}

/// # Safety
/// It is null, or there are so many bytes, which stay as they are as long as they are used.
unsafe fn slice<'a>(data: *const u8, length: u64, what: &str) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, and is to have {length} bytes")));
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= isize::MAX as usize);
    let length =
        length.ok_or_else(|| Failure::argument(format!("{what} has more bytes than there can be")))?;
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, length) })
}

/// Headers or trailers.
///
/// # Safety
/// It is null, or there are so many headers, whose names and values are there.
pub(crate) unsafe fn headers(list: *const abi::Header, count: u64) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    if count == 0 {
        return Ok(map);
    }
    let count = elements(count, "the list of headers")?;
    aligned(list, "the list of headers")?;
    // SAFETY: the caller's promise; `godwit_header` does not grow.
    for header in unsafe { std::slice::from_raw_parts(list, count) } {
        if header.size as usize != size_of::<abi::Header>() {
            let text = format!("the size of a godwit_header is {}, expected 40", header.size);
            return Err(Failure::new(abi::ERROR_SIZE, text));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { slice(header.name.cast(), header.name_length, "the name of a header") }?;
        // SAFETY: the caller's promise.
        let value = unsafe { slice(header.value.cast(), header.value_length, "the value of a header") }?;
        let shown = String::from_utf8_lossy(name).escape_debug().to_string();
        let bad = |what: &str| Failure::argument(format!("header {shown:?}: {what}"));
        let name = HeaderName::from_bytes(name)
            .map_err(|_| bad("the name is empty or has letters that may not stand in it"))?;
        let mut value = HeaderValue::from_bytes(value)
            .map_err(|_| bad("the value has control characters, which may not stand in it"))?;
        value.set_sensitive(header.flags & abi::HEADER_SENSITIVE != 0);
        map.try_append(name, value).map_err(|_| bad("there are too many headers"))?;
    }
    Ok(map)
}

/// A time; `None` for zero.
pub(crate) fn time(milliseconds: u64) -> Option<Duration> {
    (milliseconds != 0).then(|| Duration::from_millis(milliseconds))
}

/// Bits that are all known.
pub(crate) fn flags(flags: u32, known: u32, what: &str) -> Result<(), Failure> {
    match flags & !known {
        0 => Ok(()),
        unknown => {
            Err(Failure::argument(format!("the flags of {what} have {unknown:#x}, which means nothing here")))
        }
    }
}

/// A code of the application's.
pub(crate) fn code(code: u64) -> Result<godwit::ApplicationCode, Failure> {
    code.try_into().map_err(|_| Failure::argument(format!("the code is {code}, expected 2^62-1 at most")))
}
