//! Versions of QUIC that a program chooses (`QUIC_VERSION_SETTINGS`; RFC 9368).
//!
//! Each level may have a choice of its own: the library, a configuration, a connection. A choice of none at all takes an
//! earlier one back.

use super::{Given, Room};
use crate::abi::{Status, VersionSettings};

use godwit_wire::version::{DRAFT_29, MSQUIC_1, V1, V2, is_known, is_reserved};

/// The versions that are spoken here, the preferred one first.
pub(crate) const SPOKEN: [u32; 4] = [V2, V1, MSQUIC_1, DRAFT_29];

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
    fn bytes(&self) -> usize {
        let lists = [&self.acceptable, &self.offered, &self.fully_deployed];
        lists
            .iter()
            .fold(size_of::<VersionSettings>(), |sum, list| sum.saturating_add(size_of_val(list.as_slice())))
    }
}

/// What a client does with versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfClient {
    /// The one that it begins with.
    pub(crate) first: u32,
    /// Those that it offers, the preferred one first.
    pub(crate) offered: Vec<u32>,
}

/// What a server does with versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfServer {
    /// Those that it speaks, the preferred one first.
    pub(crate) accepted: Vec<u32>,
    /// To which it moves clients that began with another one.
    pub(crate) upgrade_to: Option<u32>,
}

impl OfServer {
    /// What the library's choice means to servers.
    pub(super) fn of(library: &Choice) -> OfServer {
        let chosen = library.versions.as_ref().map(|versions| spoken(&versions.acceptable));
        let accepted = chosen.filter(|chosen| !chosen.is_empty()).unwrap_or_else(|| SPOKEN.to_vec());
        let upgrade_to = accepted.first().copied().filter(|_| library.negotiated == Some(true));
        OfServer { accepted, upgrade_to }
    }
}

/// Those of a list that stand for one.
fn spoken(list: &[u32]) -> Vec<u32> {
    list.iter().copied().filter(|version| !is_reserved(*version)).collect()
}

impl Choice {
    /// Whether nothing was said.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.versions.is_none() && self.negotiated.is_none()
    }

    /// The version that a client begins with, if it is said.
    pub(super) fn first(&self) -> Option<u32> {
        self.versions.as_ref()?.fully_deployed.first().copied()
    }

    /// What a client does of whom these have said something, the nearest first: its connection, its configuration. `everywhere`
    /// is whether versions are negotiated otherwise.
    pub(super) fn of_client(levels: [&Choice; 2], everywhere: bool) -> OfClient {
        let negotiated = levels.iter().find_map(|level| level.negotiated).unwrap_or(everywhere);
        let Some(versions) = levels.iter().find_map(|level| level.versions.as_ref()) else {
            let offered = if negotiated { SPOKEN.to_vec() } else { vec![V1] };
            return OfClient { first: V1, offered };
        };
        let first = versions.fully_deployed.first().copied().unwrap_or(V1);
        let deployed = spoken(&versions.fully_deployed);
        let mut offered = if negotiated { spoken(&versions.offered) } else { spoken(&[first]) };
        if offered.is_empty() {
            offered = deployed;
        }
        if offered.is_empty() {
            offered.push(V1);
        }
        OfClient { first, offered }
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
    fn a_client_begins_with_the_first_of_the_nearest_list() {
        const RESERVED: u32 = 0x0a1a_2a3a;
        let (mut near, mut far) = (Choice::default(), Choice::default());
        let client = |near: &Choice, far: &Choice| Choice::of_client([near, far], false);
        assert_eq!(client(&near, &far), OfClient { first: V1, offered: vec![V1] });
        let by_default = Choice::of_client([&near, &far], true);
        far.negotiated = Some(true);
        assert_eq!(by_default, client(&near, &far));
        assert_eq!(client(&near, &far), OfClient { first: V1, offered: SPOKEN.to_vec() });
        assert_eq!(set(&mut far, &[V2, V1]), Ok(()));
        assert_eq!(client(&near, &far), OfClient { first: V2, offered: vec![V2, V1] });
        assert_eq!(set(&mut near, &[RESERVED, V1]), Ok(()));
        assert_eq!(client(&near, &far), OfClient { first: RESERVED, offered: vec![V1] });
        near.negotiated = Some(false);
        assert_eq!(client(&near, &far), OfClient { first: RESERVED, offered: vec![V1] });
        assert_eq!(set(&mut near, &[2]), Err(Status::INVALID_PARAMETER));
        assert_eq!((set(&mut near, &[]), &near.versions), (Ok(()), &None));
    }

    #[test]
    fn a_server_moves_clients_to_what_it_likes_best() {
        let mut choice = Choice::default();
        let server = |accepted: &[u32], upgrade_to| OfServer { accepted: accepted.to_vec(), upgrade_to };
        assert_eq!(OfServer::of(&choice), server(&SPOKEN, None));
        choice.negotiated = Some(true);
        assert_eq!(OfServer::of(&choice), server(&SPOKEN, Some(V2)));
        set(&mut choice, &[V1]).unwrap();
        assert_eq!(OfServer::of(&choice), server(&[V1], Some(V1)));
        choice.negotiated = Some(false);
        assert_eq!(OfServer::of(&choice), server(&[V1], None));
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
