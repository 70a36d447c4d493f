//! Memory that the program no longer uses, given back to the system.
//!
//! The allocator of glibc keeps what is free between what is in use: after a rush of connections a program may hold for good
//! several times what it needs. mimalloc keeps what is free for a second, and then gives it back when something else happens
//! to it: where nothing happens, never.

#[cfg(feature = "mimalloc")]
use libmimalloc_sys as _;

/// Whether [`give_back`] gives back what the calling thread has freed alone, and not all threads: with the feature `mimalloc`.
pub const BY_THREAD: bool = cfg!(feature = "mimalloc");

/// Gives back what is free, and returns whether there may have been anything. It takes a millisecond for some 10 MiB, and whoever
/// allocates meanwhile may have to wait. False where the allocator has no such thing.
///
/// With mimalloc each thread keeps what it has freed, and is to call this itself ([`BY_THREAD`]).
pub fn give_back() -> bool {
    // Also beside mimalloc: what is written in C allocates here.
    trim() | collect()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() -> bool {
    // SAFETY: no memory is handed over; the allocator changes nothing that is in use, and may be called by any thread.
    let rc = unsafe { libc::malloc_trim(0) };
    rc == 1
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() -> bool {
    false
}

#[cfg(feature = "mimalloc")]
fn collect() -> bool {
    unsafe extern "C" {
        /// `void mi_collect(bool force)` of mimalloc.h.
        fn mi_collect(force: bool);
    }
    // SAFETY: it is declared as in C, takes no memory, changes nothing that is in use, and may be called by any thread.
    unsafe { mi_collect(true) };
    true
}

#[cfg(not(feature = "mimalloc"))]
fn collect() -> bool {
    false
}

/// Has the system give this process no huge pages of 2 MiB, unless it asks for them, and returns whether it does so. What is in
/// use after a rush lies scattered, and would keep whole ones.
pub fn without_huge_pages() -> bool {
    #[cfg(target_os = "linux")]
    {
        let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
        // SAFETY: it takes numbers alone, and changes nothing but how memory is mapped from now on.
        let rc = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, unused, unused, unused) };
        rc == 0
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// Bytes of the program that are in memory; `None` where the system does not tell.
pub fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_between_what_is_used_is_given_back() {
        const BLOCKS: usize = 64 << 10;
        let _alone = crate::memory::tests::alone();
        let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; 1024]).collect();
        let full = resident().unwrap();
        // One in a hundred stays, so that nothing is free to the end.
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 100 == 0
        });
        let kept = resident().unwrap();
        assert!(give_back());
        let left = resident().unwrap();
        let most = full - (BLOCKS as u64 * 1024) / 2;
        assert!(kept > most && left < most, "{full} bytes, {kept} when most was free, {left} afterwards");
        assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 1)));
    }
}
