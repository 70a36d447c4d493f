//! Handles: numbers that say what kind of thing is meant, where it is, and which of those that have been there.
//!
//! ```text
//!  bit 63..56   55..24        23..0
//!      kind     generation    index
//! ```
//! A handle that was closed finds nothing, and one of another kind is known by its kind. Nothing is ever read from where it
//! would point to. All objects of the process are in one table, whose lock is held for a look only.

use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use godwit_base::Slab;
use godwit_base::slab::Key;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

const INDEX_BITS: u32 = 24;
const KIND_SHIFT: u32 = 56;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

static OBJECTS: Mutex<Slab<Object>> = Mutex::new(Slab::new());

/// What handles stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Runtime = 1,
    Queue = 2,
    Client = 3,
    Server = 4,
    Exchange = 5,
    Endpoint = 6,
    Connection = 7,
    Stream = 8,
}

/// Kinds by their numbers, from 1.
const WORDS: [&str; 8] =
    ["runtime", "queue", "client", "server", "exchange", "endpoint", "connection", "stream"];

impl Kind {
    const fn number(self) -> u64 {
        self as u64
    }
}

/// Something that a handle stands for.
pub(crate) trait Thing: Any + Send + Sync {
    /// What it is.
    const KIND: Kind;

    /// Ends what is left of it.
    fn close(&self);

    /// Has another tag in its events. False if it has none.
    fn set_tag(&self, tag: u64) -> bool;
}

/// A thing of any kind.
#[derive(Clone)]
struct Object {
    kind: Kind,
    it: Arc<dyn Any + Send + Sync>,
    close: fn(&dyn Any),
    set_tag: fn(&dyn Any, u64) -> bool,
}

impl Object {
    fn of<T: Thing>(it: Arc<T>) -> Object {
        Object {
            kind: T::KIND,
            it,
            close: |it| {
                if let Some(it) = it.downcast_ref::<T>() {
                    it.close();
                }
            },
            set_tag: |it, tag| it.downcast_ref::<T>().is_some_and(|it| it.set_tag(tag)),
        }
    }
}

/// Gives an object a handle; it is made with that.
pub(crate) fn insert<T: Thing>(make: impl FnOnce(u64) -> Arc<T>) -> Result<Arc<T>, Failure> {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    if objects.len() as u64 > INDEX_MASK {
        let text = format!("there are {} handles, as many as there can be; close some", objects.len());
        return Err(Failure::new(abi::ERROR_LIMIT, text));
    }
    let mut made = None;
    objects.insert_with(|key| {
        let generation = u64::from(key.generation());
        let it =
            make(T::KIND.number() << KIND_SHIFT | generation << INDEX_BITS | key.index() as u64 & INDEX_MASK);
        made = Some(Arc::clone(&it));
        Object::of(it)
    });
    made.ok_or_else(|| Failure::new(abi::ERROR_INTERNAL, "nothing was made; please report it"))
}

/// What a handle of this kind stands for.
pub(crate) fn get<T: Thing>(handle: u64) -> Result<Arc<T>, Failure> {
    let found = find(handle).and_then(|object| object.it.downcast::<T>().ok());
    found.ok_or_else(|| absent(handle, Some(T::KIND)))
}

fn find(handle: u64) -> Option<Object> {
    let objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(objects.get(key(&objects, handle)?)?.clone())
}

/// Where it is, if it is still that which is meant, and of the kind that the handle says.
fn key(objects: &Slab<Object>, handle: u64) -> Option<Key> {
    let (key, object) = objects.at((handle & INDEX_MASK) as usize)?;
    let is_it = u64::from(key.generation()) == (handle >> INDEX_BITS) & u64::from(u32::MAX);
    (is_it && object.kind.number() == handle >> KIND_SHIFT).then_some(key)
}

fn word(kind: u64) -> Option<&'static str> {
    WORDS.get(usize::try_from(kind).ok()?.checked_sub(1)?).copied()
}

/// Why a handle is not what was expected: of this kind, or of any.
fn absent(handle: u64, expected: Option<Kind>) -> Failure {
    let kind = handle >> KIND_SHIFT;
    let came = match word(kind) {
        _ if handle == 0 => "0, which is no handle".to_owned(),
        Some(_) if expected.is_none_or(|expected| expected.number() == kind) => {
            format!("{handle:#x}, which was closed")
        }
        Some(word) => format!("{handle:#x}, the handle of another kind: {word}"),
        None => format!("{handle:#x}, which never was a handle"),
    };
    let wanted = expected.and_then(|expected| word(expected.number())).unwrap_or("anything open");
    Failure::new(abi::ERROR_HANDLE, format!("expected a handle of {wanted}, came {came}"))
}

/// Takes an object out of the table and ends what is left of it.
pub(crate) fn close(handle: u64) -> Result<(), Failure> {
    let removed = {
        let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
        key(&objects, handle).and_then(|key| objects.remove(key))
    };
    // Whatever it does, it does without the lock.
    let Object { it, close, .. } = removed.ok_or_else(|| absent(handle, None))?;
    close(&*it);
    Ok(())
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_close(handle: u64, error: *mut abi::Error) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { call(error, || close(handle)) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_set_tag(handle: u64, tag: u64, error: *mut abi::Error) -> i32 {
    let act = || {
        let Object { it, set_tag, .. } = find(handle).ok_or_else(|| absent(handle, None))?;
        let untagged = || Failure::new(abi::ERROR_HANDLE, "queues and runtimes have no handle with a tag");
        if set_tag(&*it, tag) { Ok(()) } else { Err(untagged()) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
