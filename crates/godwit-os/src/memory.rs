//! How much memory the process may have, and how much processes have.
//!
//! On Linux that is the memory of the machine, or less where the control group (cgroup v2) of the process, or one that it is
//! part of, has a limit: what a service manager or a container sets. Other systems are not asked.

use std::path::Path;

/// Where the control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes that the process may have: the least of what the machine has and the limits of its control groups. `None` where the
/// system does not tell.
pub fn permitted() -> Option<u64> {
    least(|path| std::fs::read_to_string(path).ok())
}

/// The memory that a process has at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resident {
    /// Bytes of its pages that are in memory (RSS), those that it shares with others included.
    pub rss: u64,
    /// The same with its part only of pages that are shared (PSS), where the system tells: of processes of the same user.
    pub pss: Option<u64>,
}

impl Resident {
    /// Of this process. `None` where the system does not tell.
    pub fn now() -> Option<Resident> {
        Resident::read("self")
    }

    /// Of another process of this machine. `None` where the system does not tell, or if there is none with this number.
    pub fn of(process: u32) -> Option<Resident> {
        Resident::read(&process.to_string())
    }

    fn read(process: &str) -> Option<Resident> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).ok();
        let rss = read("status").and_then(|status| kilobytes(&status, "VmRSS:"))?;
        let pss = read("smaps_rollup").and_then(|rollup| kilobytes(&rollup, "Pss:"));
        Some(Resident { rss, pss })
    }
}

/// With what `read` finds in files.
fn least(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| total(&text));
    let own = read(Path::new("/proc/self/cgroup")).and_then(|text| group(&text).map(str::to_owned));
    let groups = own.map(|own| Path::new(GROUPS).join(own));
    let above = groups.iter().flat_map(|group| group.ancestors());
    // Also the last of them: in a container it is one that has a limit.
    let above = above.take_while(|group| group.starts_with(GROUPS));
    let limits = above.filter_map(|group| read(&group.join("memory.max"))?.trim().parse().ok());
    machine.into_iter().chain(limits).min()
}

/// What the machine has, by `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    kilobytes(meminfo, "MemTotal:")
}

/// The value in bytes of the line that begins so.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The group of version 2, by `/proc/self/cgroup`, from the uppermost that the process sees on.
fn group(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|line| line.strip_prefix("0::/"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use std::sync::{Mutex, MutexGuard, PoisonError};

    const MEMINFO: (&str, &str) =
        ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree:          100000 kB\n");
    const OWN: (&str, &str) =
        ("/proc/self/cgroup", "12:memory:/v1\n1:name=systemd:/x\n0::/a.slice/b.service\n");
    const MACHINE: u64 = 8_000_000 * 1024;

    /// For tests that measure this process, which is one for all tests: until it is dropped, no other of them does.
    #[cfg(target_os = "linux")]
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static MEASURING: Mutex<()> = Mutex::new(());
        MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of a system with these files.
    fn of(files: &[(&str, &str)]) -> Option<u64> {
        least(|path| {
            let (_, text) = files.iter().find(|(name, _)| Path::new(name) == path)?;
            Some((*text).to_owned())
        })
    }

    #[test]
    fn a_machine_without_groups_has_what_it_says() {
        assert_eq!(of(&[MEMINFO]), Some(MACHINE));
        assert_eq!(of(&[("/proc/meminfo", "MemFree: 1 kB\nMemTotal: lots\n")]), None);
        assert_eq!(of(&[]), None, "another system");
    }

    #[test]
    fn the_least_limit_above_counts() {
        fn limit(path: &str, text: &str) -> Option<u64> {
            of(&[MEMINFO, OWN, (path, text)])
        }
        for group in ["", "/a.slice", "/a.slice/b.service"] {
            let path = format!("/sys/fs/cgroup{group}/memory.max");
            assert_eq!(limit(&path, "536870912\n"), Some(512 << 20), "{path}");
            assert_eq!(limit(&path, "max\n"), Some(MACHINE), "{path}");
            assert_eq!(limit(&path, "99999999999999\n"), Some(MACHINE), "{path}: more than there is");
        }
        for path in ["/memory.max", "/sys/fs/memory.max", "/sys/fs/cgroup/v1/memory.max"] {
            assert_eq!(limit(path, "1\n"), Some(MACHINE), "{path}: not above");
        }
        let several = [
            MEMINFO,
            OWN,
            ("/sys/fs/cgroup/a.slice/memory.max", "1000000"),
            ("/sys/fs/cgroup/a.slice/b.service/memory.max", "2000000"),
        ];
        assert_eq!(of(&several), Some(1_000_000));
        assert_eq!(of(&several[1..]), Some(1_000_000), "though the machine does not say");
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_uppermost() {
        let files = [MEMINFO, ("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/memory.max", "268435456\n")];
        assert_eq!(of(&files), Some(256 << 20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_takes_is_seen() {
        let _alone = alone();
        let before = Resident::of(std::process::id()).unwrap();
        let taken = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = Resident::now().unwrap();
        assert!(after.rss >= before.rss + (24 << 20), "{before:?} {after:?}");
        assert!(after.pss >= before.pss.map(|pss| pss + (24 << 20)), "{before:?} {after:?}");
        assert_eq!((taken.len(), Resident::of(u32::MAX)), (32 << 20, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_tells() {
        assert!(permitted().is_some_and(|bytes| bytes > 16 << 20));
    }
}
