//! What holds for settings on each level: of the library, of a configuration, of a connection.
//!
//! What a level says nothing of is as on the one below: a connection's as its configuration's, that as the library's, and that
//! as it always is. The window of a kind of streams is what the window of all of them is, where the same level does not say
//! otherwise.

use crate::abi::{Setting, SettingValues, Status};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Those that an application has set for all. What it has not set is as it always is.
static GLOBAL: Mutex<Option<SettingValues>> = Mutex::new(None);

/// The windows of single kinds of streams.
pub(crate) const WINDOWS_OF_KINDS: [Setting; 3] = [
    Setting::StreamRecvWindowBidiLocalDefault,
    Setting::StreamRecvWindowBidiRemoteDefault,
    Setting::StreamRecvWindowUnidiDefault,
];

/// What cannot change once a connection has begun: packets have the size that they have, and the marks.
const FIXED: [Setting; 3] = [Setting::MinimumMtu, Setting::MaximumMtu, Setting::EcnEnabled];

/// The smallest MTU that there is, and the largest, in bytes. What is beyond them is taken for them.
const MTU: (u64, u64) = (1248, 1500);

/// Maps of XDP programs were given: XDP cannot be switched off.
static XDP_WANTED: AtomicBool = AtomicBool::new(false);

/// Says whether XDP cannot be switched off.
pub(crate) fn set_xdp_wanted(wanted: bool) {
    XDP_WANTED.store(wanted, Ordering::Relaxed);
}

/// What holds for a setting where nothing else does.
pub(crate) fn global(setting: Setting) -> u64 {
    let global = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
    global.as_ref().and_then(|own| said(own, setting)).unwrap_or(setting.place().default)
}

/// All of them, as the library has them.
pub(crate) fn globals() -> SettingValues {
    over(&SettingValues::defaults(), &[&own()])
}

/// Those that were set for the library.
pub(crate) fn own() -> SettingValues {
    GLOBAL.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
}

/// Sets some of them for the library.
///
/// # Errors
/// As [`apply`] has them.
pub(crate) fn change(changed: &SettingValues) -> Result<(), Status> {
    let mut global = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
    apply(global.get_or_insert_default(), changed, false)
}

/// What a level says of a setting.
pub(crate) fn said(own: &SettingValues, setting: Setting) -> Option<u64> {
    let of_all = || own.get(Setting::StreamRecvWindowDefault).filter(|_| WINDOWS_OF_KINDS.contains(&setting));
    own.get(setting).or_else(of_all)
}

/// What holds on the last of these levels, of which each goes before those in front of it.
pub(crate) fn over(below: &SettingValues, levels: &[&SettingValues]) -> SettingValues {
    let mut all = *below;
    for level in levels {
        for setting in Setting::ALL {
            if let Some(value) = said(level, setting) {
                all.set(setting, value);
            }
        }
    }
    all
}

/// Changes what a level says, wholly or not at all. A connection may have begun.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if one of the values is none that it can have, two cannot be together, or one cannot be changed
/// any more.
pub(crate) fn apply(own: &mut SettingValues, changed: &SettingValues, has_begun: bool) -> Result<(), Status> {
    let mut changed = *changed;
    for setting in [Setting::MinimumMtu, Setting::MaximumMtu] {
        if let Some(mtu) = changed.get(setting) {
            changed.set(setting, mtu.clamp(MTU.0, MTU.1));
        }
    }
    let mtu = |setting, otherwise| changed.get(setting).or(own.get(setting)).unwrap_or(otherwise);
    let is_possible = changed.refused().is_none()
        && mtu(Setting::MinimumMtu, MTU.0) <= mtu(Setting::MaximumMtu, MTU.1)
        && !(has_begun && FIXED.iter().any(|setting| changed.get(*setting).is_some()));
    let is_possible =
        is_possible && (changed.get(Setting::XdpEnabled) != Some(0) || !XDP_WANTED.load(Ordering::Relaxed));
    if !is_possible {
        return Err(Status::INVALID_PARAMETER);
    }
    if let Some(window) = changed.get(Setting::StreamRecvWindowDefault) {
        // It takes the place of what was said of single kinds before.
        for kind in WINDOWS_OF_KINDS.into_iter().filter(|kind| own.get(*kind).is_some()).collect::<Vec<_>>() {
            own.set(kind, window);
        }
    }
    changed.iter().for_each(|(setting, value)| own.set(setting, value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(Setting, u64)]) -> SettingValues {
        let mut values = SettingValues::default();
        settings.iter().for_each(|(setting, value)| values.set(*setting, *value));
        values
    }

    #[test]
    fn each_level_goes_before_the_one_below() {
        let below = SettingValues::defaults();
        let (configured, own) = (
            of(&[(Setting::IdleTimeoutMs, 1), (Setting::MaxAckDelayMs, 2)]),
            of(&[(Setting::IdleTimeoutMs, 3)]),
        );
        let all = over(&below, &[&configured, &own]);
        assert_eq!(all.get(Setting::IdleTimeoutMs), Some(3));
        assert_eq!(all.get(Setting::MaxAckDelayMs), Some(2));
        assert_eq!(all.get(Setting::InitialRttMs), Some(333));
    }

    #[test]
    fn the_window_of_a_kind_is_that_of_all_where_nothing_else_is_said() {
        let (all, bidi, uni) = (Setting::StreamRecvWindowDefault, WINDOWS_OF_KINDS[1], WINDOWS_OF_KINDS[2]);
        let own = of(&[(all, 1 << 20), (bidi, 1 << 18)]);
        let found = over(&SettingValues::defaults(), &[&own]);
        assert_eq!([all, bidi, uni].map(|it| found.get(it)), [Some(1 << 20), Some(1 << 18), Some(1 << 20)]);
        assert_eq!((said(&own, uni), said(&own, Setting::MinimumMtu)), (Some(1 << 20), None));
    }

    #[test]
    fn a_window_of_all_takes_the_place_of_those_of_kinds_before() {
        let (all, bidi) = (Setting::StreamRecvWindowDefault, WINDOWS_OF_KINDS[0]);
        let mut own = of(&[(bidi, 1 << 18)]);
        apply(&mut own, &of(&[(all, 1 << 16)]), false).unwrap();
        assert_eq!(own.get(bidi), Some(1 << 16));
    }

    #[test]
    fn mtus_are_brought_into_bounds_and_must_fit_together() {
        let (min, max) = (Setting::MinimumMtu, Setting::MaximumMtu);
        let mut own = SettingValues::default();
        apply(&mut own, &of(&[(min, 100), (max, 65_535)]), false).unwrap();
        assert_eq!((own.get(min), own.get(max)), (Some(1248), Some(1500)));
        apply(&mut own, &of(&[(max, 1300)]), false).unwrap();
        assert_eq!(apply(&mut own, &of(&[(min, 1301)]), false), Err(Status::INVALID_PARAMETER));
        assert_eq!(own.get(min), Some(1248));
    }

    #[test]
    fn nothing_changes_if_one_value_is_refused() {
        let mut own = SettingValues::default();
        let wrong = of(&[(Setting::IdleTimeoutMs, 5), (Setting::InitialRttMs, 0)]);
        assert_eq!(apply(&mut own, &wrong, false), Err(Status::INVALID_PARAMETER));
        assert_eq!(own, SettingValues::default());
    }

    #[test]
    fn packets_of_a_connection_that_has_begun_stay_as_they_are() {
        let mut own = SettingValues::default();
        for setting in FIXED {
            assert_eq!(apply(&mut own, &of(&[(setting, 1300)]), true), Err(Status::INVALID_PARAMETER));
        }
        assert_eq!(apply(&mut own, &of(&[(Setting::KeepAliveIntervalMs, 1)]), true), Ok(()));
    }
}
