//! Versions of QUIC that a program chooses (`QUIC_VERSION_SETTINGS`; RFC 9368).
//!
//! Each level may have a choice of its own: the library, a configuration, a connection. A choice of none at all takes an
//! earlier one back.

use super::{Given, Room};
use crate::abi::{Status, VersionSettings};

/// The versions that are spoken here, the preferred one first (RFC 9369, RFC 9000).
pub(super) const SPOKEN: [u32; 2] = [0x6b33_43cf, 1];

fn is_known(version: u32) -> bool {
    SPOKEN.contains(&version)
}

/// Whether a version stands for none and is there to be ignored (RFC 9000 section 15).
const fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// A choice of versions, each list with the preferred one first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Versions {
    acceptable: Vec<u32>,
    offered: Vec<u32>,
    fully_deployed: Vec<u32>,
}

/// What a level says of versions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(super) versions: Option<Versions>,
    /// Whether they are negotiated in the handshake.
    pub(super) negotiated: Option<bool>,
}

impl Versions {
    /// The version that a client begins with, if it is said.
    fn first(&self) -> Option<u32> {
        self.fully_deployed.first().copied().filter(|version| is_known(*version))
    }

    fn bytes(&self) -> usize {
        let lists = [&self.acceptable, &self.offered, &self.fully_deployed];
        lists
            .iter()
            .fold(size_of::<VersionSettings>(), |sum, list| sum.saturating_add(size_of_val(list.as_slice())))
    }
}

impl Choice {
    /// The version that a client begins with, if it is said.
    pub(crate) fn first(&self) -> Option<u32> {
        self.versions.as_ref().and_then(Versions::first)
    }

    /// Takes a program's choice, and has versions negotiated.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if one is no version that is spoken here, nor one that stands for none.
    pub(super) fn set(&mut self, given: &Given<'_>) -> Result<(), Status> {
        let settings: VersionSettings = given.at_least()?;
        // SAFETY: the program has given lists of these lengths, and leaves them as they are during the call.
        let list = |start, length| unsafe { list(start, length) };
        let versions = Versions {
            acceptable: list(settings.acceptable_versions, settings.acceptable_versions_length)?,
            offered: list(settings.offered_versions, settings.offered_versions_length)?,
            fully_deployed: list(settings.fully_deployed_versions, settings.fully_deployed_versions_length)?,
        };
        self.negotiated = Some(true);
        self.versions = Some(versions).filter(|versions| *versions != Versions::default());
        Ok(())
    }

    /// Tells the choice, the lists behind what says where they are: in the order of the network, unlike what is set.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn get(&self, room: &mut Room<'_>) -> Result<(), Status> {
        let none = Versions::default();
        let versions = self.versions.as_ref().unwrap_or(&none);
        room.need(versions.bytes())?;
        let Some(start) = room.start() else { return Err(Status::INVALID_PARAMETER) };
        let mut behind = start.wrapping_add(size_of::<VersionSettings>());
        let mut place = |list: &[u32]| {
            let place = behind;
            behind = behind.wrapping_add(size_of_val(list));
            if self.versions.is_none() { std::ptr::null() } else { place.cast_const().cast::<u32>() }
        };
        let settings = VersionSettings {
            acceptable_versions: place(&versions.acceptable),
            offered_versions: place(&versions.offered),
            fully_deployed_versions: place(&versions.fully_deployed),
            acceptable_versions_length: length(&versions.acceptable),
            offered_versions_length: length(&versions.offered),
            fully_deployed_versions_length: length(&versions.fully_deployed),
        };
        let lists = [&versions.acceptable, &versions.offered, &versions.fully_deployed];
        let lists: Vec<u8> = lists.into_iter().flatten().flat_map(|version| version.to_be_bytes()).collect();
        room.put_behind(settings, &VersionSettings::LAYOUT, &lists);
        Ok(())
    }
}

fn length(list: &[u32]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// A list of versions.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if there is none, or one is not spoken here.
///
/// # Safety
/// It is null, or there are so many versions.
unsafe fn list(start: *const u32, length: u32) -> Result<Vec<u32>, Status> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if start.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    // SAFETY: the caller promises it. What it points to need not be aligned.
    let versions = (0..length as usize).map(|at| unsafe { start.wrapping_add(at).read_unaligned() });
    let versions: Vec<u32> = versions.collect();
    let is_possible = versions.iter().all(|version| is_known(*version) || is_reserved(*version));
    if is_possible { Ok(versions) } else { Err(Status::INVALID_PARAMETER) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::plain::{bytes_of, read};
    use std::mem::MaybeUninit;
    use std::ptr::null;

    fn set(choice: &mut Choice, list: &[u32]) -> Result<(), Status> {
        let settings = VersionSettings {
            acceptable_versions: list.as_ptr(),
            offered_versions: null(),
            fully_deployed_versions: list.as_ptr(),
            acceptable_versions_length: length(list),
            offered_versions_length: 0,
            fully_deployed_versions_length: length(list),
        };
        let mut bytes = bytes_of(&settings).to_vec();
        // What lies behind the last member has no value of its own.
        bytes.iter_mut().skip(36).for_each(|byte| *byte = MaybeUninit::new(0));
        // SAFETY: all bytes have a value now.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
        choice.set(&Given::new(Some(&bytes), bytes.len() as u32))
    }

    #[test]
    fn a_client_begins_with_the_first_that_is_spoken_here() {
        let mut choice = Choice::default();
        assert_eq!((set(&mut choice, &SPOKEN), choice.first()), (Ok(()), Some(SPOKEN[0])));
        assert_eq!(choice.negotiated, Some(true));
        assert_eq!(set(&mut choice, &[0x0a1a_2a3a]), Ok(()), "it stands for none");
        assert_eq!(choice.first(), None);
        assert_eq!(set(&mut choice, &[2]), Err(Status::INVALID_PARAMETER));
        assert_eq!(set(&mut choice, &[]), Ok(()));
        assert_eq!(choice.versions, None);
    }

    #[test]
    fn lists_are_told_behind_what_says_where_they_are() {
        let mut choice = Choice::default();
        set(&mut choice, &[1]).unwrap();
        let mut memory = vec![MaybeUninit::new(0); 48];
        let mut room_left = 47;
        assert_eq!(
            choice.get(&mut Room::new(&mut room_left, Some(&mut memory[..47]))),
            Err(Status::BUFFER_TOO_SMALL)
        );
        assert_eq!(choice.get(&mut Room::new(&mut room_left, Some(&mut memory))), Ok(()));
        // SAFETY: all bytes have had a value from the beginning.
        let bytes: Vec<u8> = memory.iter().map(|byte| unsafe { byte.assume_init() }).collect();
        let told: VersionSettings = read(&bytes).unwrap();
        assert_eq!(told.acceptable_versions.addr(), memory.as_ptr().addr() + 40);
        assert_eq!((told.acceptable_versions_length, told.offered_versions_length), (1, 0));
        assert_eq!(bytes[40..], [0, 0, 0, 1, 0, 0, 0, 1]);
    }
}
