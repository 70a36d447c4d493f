//! Keys on their way out of rustls, as what they are.
//!
//! rustls hands out keys as trait objects, each in memory of its own and of a type that is not to be known any more. Within
//! [`laying_aside`] those of [`super::provider`] do not go that way: they are set aside, and trait objects that take no
//! memory stand in their places, which tell nothing but where they lie.
//!
//! Invariant: what is set aside belongs to the calling thread and is gone when [`laying_aside`] returns.

use super::header_key::HeaderKey;
use super::packet_key::AeadPacketKey;
use rustls::Error;
use rustls::quic::{HeaderProtectionKey, PacketKey, Tag};
use std::cell::RefCell;

/// A packet key.
#[allow(clippy::large_enum_variant, reason = "it is one of ours nearly always; ring's are the large ones")]
pub(crate) enum FoundPacketKey {
    /// One of ours.
    Ours(AeadPacketKey),
    /// Of another provider.
    Theirs(Box<dyn PacketKey>),
}

/// A header protection key.
pub(crate) enum FoundHeaderKey {
    /// One of ours.
    Ours(HeaderKey),
    /// Of another provider.
    Theirs(Box<dyn HeaderProtectionKey>),
}

impl FoundPacketKey {
    /// As rustls sees it.
    #[inline]
    pub(crate) fn any(&self) -> &dyn PacketKey {
        match self {
            FoundPacketKey::Ours(key) => key,
            FoundPacketKey::Theirs(key) => key.as_ref(),
        }
    }

    /// The same key once more. None if it is of another provider, whose keys cannot be copied.
    pub(crate) fn another(&self) -> Option<Self> {
        match self {
            FoundPacketKey::Ours(key) => Some(FoundPacketKey::Ours(key.another())),
            FoundPacketKey::Theirs(_) => None,
        }
    }

    /// Makes what is to be used, where that waits for the first use.
    pub(crate) fn prepare(&self) {
        if let FoundPacketKey::Ours(key) = self {
            key.prepare();
        }
    }

    /// Gives back memory until the next use.
    pub(crate) fn forget(&mut self) {
        if let FoundPacketKey::Ours(key) = self {
            key.forget();
        }
    }
}

impl FoundHeaderKey {
    /// As rustls sees it.
    #[inline]
    pub(crate) fn any(&self) -> &dyn HeaderProtectionKey {
        match self {
            FoundHeaderKey::Ours(key) => key,
            FoundHeaderKey::Theirs(key) => key.as_ref(),
        }
    }

    /// The same key once more. None if it is of another provider, whose keys cannot be copied.
    pub(crate) fn another(&self) -> Option<Self> {
        match self {
            FoundHeaderKey::Ours(key) => Some(FoundHeaderKey::Ours(key.another())),
            FoundHeaderKey::Theirs(_) => None,
        }
    }

    /// Gives back memory until the next use.
    pub(crate) fn forget(&mut self) {
        if let FoundHeaderKey::Ours(key) = self {
            key.forget();
        }
    }
}

/// As many as rustls makes at once: one of each kind for each direction.
#[derive(Default)]
struct Aside {
    packet_keys: [Option<AeadPacketKey>; 2],
    header_keys: [Option<HeaderKey>; 2],
}

thread_local! {
    static ASIDE: RefCell<Option<Aside>> = const { RefCell::new(None) };
}

/// Puts back what was set aside before, even if TLS panics.
struct Before(Option<Aside>);

impl Drop for Before {
    fn drop(&mut self) {
        ASIDE.replace(self.0.take());
    }
}

/// Calls `act`, during which keys are set aside, to be fetched by [`packet_key`] and [`header_key`].
pub(crate) fn laying_aside<R>(act: impl FnOnce() -> R) -> R {
    let _before = Before(ASIDE.replace(Some(Aside::default())));
    act()
}

/// What rustls gave, as what it is.
pub(crate) fn packet_key(given: Box<dyn PacketKey>) -> FoundPacketKey {
    let at = usize::try_from(given.confidentiality_limit()).unwrap_or(usize::MAX);
    let found = ASIDE.with_borrow_mut(|aside| aside.as_mut()?.packet_keys.get_mut(at)?.take());
    found.map_or(FoundPacketKey::Theirs(given), FoundPacketKey::Ours)
}

/// What rustls gave, as what it is.
pub(crate) fn header_key(given: Box<dyn HeaderProtectionKey>) -> FoundHeaderKey {
    let found =
        ASIDE.with_borrow_mut(|aside| aside.as_mut()?.header_keys.get_mut(given.sample_len())?.take());
    found.map_or(FoundHeaderKey::Theirs(given), FoundHeaderKey::Ours)
}

pub(super) fn lay_packet_key(key: AeadPacketKey) -> Box<dyn PacketKey> {
    match lay(key, |aside| &mut aside.packet_keys) {
        Ok(0) => Box::new(Place::<0>),
        Ok(_) => Box::new(Place::<1>),
        Err(key) => Box::new(key),
    }
}

pub(super) fn lay_header_key(key: HeaderKey) -> Box<dyn HeaderProtectionKey> {
    match lay(key, |aside| &mut aside.header_keys) {
        Ok(0) => Box::new(Place::<0>),
        Ok(_) => Box::new(Place::<1>),
        Err(key) => Box::new(key),
    }
}

/// Sets a key aside and says where, or gives it back if nothing is to be set aside now.
fn lay<K>(key: K, places: impl FnOnce(&mut Aside) -> &mut [Option<K>; 2]) -> Result<usize, K> {
    ASIDE.with_borrow_mut(|aside| match aside.as_mut().map(places) {
        Some([place @ None, _]) => {
            *place = Some(key);
            Ok(0)
        }
        Some([_, place @ None]) => {
            *place = Some(key);
            Ok(1)
        }
        _ => Err(key),
    })
}

/// Where a key lies. It protects nothing.
struct Place<const AT: usize>;

impl<const AT: usize> PacketKey for Place<AT> {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        0
    }

    /// Where.
    fn confidentiality_limit(&self) -> u64 {
        AT as u64
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl<const AT: usize> HeaderProtectionKey for Place<AT> {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    /// Where.
    fn sample_len(&self) -> usize {
        AT
    }
}
