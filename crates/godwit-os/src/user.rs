//! In whose name the process acts.

/// The user's number (effective user id).
pub fn id() -> u32 {
    // SAFETY: the call takes nothing, writes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The group's number (effective group id).
pub fn group() -> u32 {
    // SAFETY: as in `id`.
    unsafe { libc::getegid() }
}

/// Whether it is root.
pub fn is_root() -> bool {
    id() == 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_process_belongs_to_its_user() {
        let own = std::fs::metadata("/proc/self").unwrap();
        assert_eq!((super::id(), super::group()), (own.uid(), own.gid()));
        assert_eq!(super::is_root(), own.uid() == 0);
    }
}
