//! The processor time that processes used.
//!
//! On Linux the scheduler's own figures per thread are read, which are exact and tell as well how long the
//! threads were ready to run and had no core. Elsewhere nothing is known.

use std::iter::Sum;
use std::ops::Sub;
use std::time::Duration;

/// Processor time since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Time on a core.
    pub ran: Duration,
    /// Time in which a thread was ready and had to wait for a core.
    pub waited: Duration,
}

impl Usage {
    /// As of now, over all threads that are alive. `None` where the system does not tell.
    pub fn now() -> Option<Usage> {
        Usage::of_threads("/proc/self/task")
    }

    /// As of now, of another process of this machine: of its threads that are alive. `None` where the system does not tell,
    /// or if there is none with this number.
    pub fn of(process: u32) -> Option<Usage> {
        Usage::of_threads(&format!("/proc/{process}/task"))
    }

    /// As of now, of the calling thread. `None` where the system does not tell.
    pub fn of_this_thread() -> Option<Usage> {
        Usage::parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    fn of_threads(folder: &str) -> Option<Usage> {
        let mut sum = Usage::default();
        for thread in std::fs::read_dir(folder).ok()? {
            // A thread may end meanwhile.
            let Ok(text) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
            let thread = Usage::parse(&text)?;
            sum.ran += thread.ran;
            sum.waited += thread.waited;
        }
        Some(sum)
    }

    /// `time on a core` and `time waiting`, in nanoseconds, and a count that is of no interest.
    fn parse(schedstat: &str) -> Option<Usage> {
        let mut fields = schedstat.split_whitespace().map(|field| field.parse().map(Duration::from_nanos));
        let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
        Some(Usage { ran, waited })
    }
}

/// The clock of one thread: the time that it was on a core.
#[derive(Debug, Clone, Copy)]
pub struct ThreadClock {
    #[cfg(target_os = "linux")]
    id: libc::clockid_t,
}

#[cfg(target_os = "linux")]
impl ThreadClock {
    /// The calling thread's. `None` where the system does not tell.
    pub fn of_this_thread() -> Option<ThreadClock> {
        let mut id = 0;
        // SAFETY: the calling thread exists, and the kernel's number of its clock is written into a variable of that type.
        let rc = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
        (rc == 0).then_some(ThreadClock { id })
    }

    /// Time that the thread was on a core since it began; `None` once it has ended.
    pub fn ran(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes into a variable of the right type, and knows a clock whose thread is gone for wrong.
        let rc = unsafe { libc::clock_gettime(self.id, &raw mut time) };
        let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
        (rc == 0).then(|| Duration::new(seconds, nanos))
    }
}

#[cfg(not(target_os = "linux"))]
impl ThreadClock {
    /// This system does not tell.
    pub fn of_this_thread() -> Option<ThreadClock> {
        None
    }

    /// This system does not tell.
    pub fn ran(&self) -> Option<Duration> {
        None
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), |sum, one| Usage {
            ran: sum.ran + one.ran,
            waited: sum.waited + one.waited,
        })
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedulers_figures_are_nanoseconds() {
        let usage = Usage::parse("1500000000 20000 42\n").unwrap();
        assert_eq!(usage.ran, Duration::from_millis(1500));
        assert_eq!(usage.waited, Duration::from_micros(20));
        assert_eq!(Usage::parse("12 x 1"), None);
        assert_eq!(Usage::parse(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn other_processes_are_told_by_their_number() {
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.ran > Duration::ZERO && own.ran <= Usage::now().unwrap().ran);
        assert_eq!([own, own].into_iter().sum::<Usage>().ran, own.ran * 2);
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_threads_clock_is_read_by_others_until_it_ends() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(ThreadClock::of_this_thread().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let clock = told.recv().unwrap();
        let ran = clock.ran().unwrap();
        assert!(ran > Duration::ZERO && ran <= Usage::now().unwrap().ran);
        drop(end);
        thread.join().unwrap();
        while clock.ran().is_some() {
            std::thread::yield_now();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_told_of_itself_alone() {
        let of_a_new_one = std::thread::spawn(|| Usage::of_this_thread().unwrap()).join().unwrap();
        let before = Usage::of_this_thread().unwrap();
        while Usage::of_this_thread().unwrap().ran <= before.ran + of_a_new_one.ran {}
        assert!(Usage::of_this_thread().unwrap().ran <= Usage::now().unwrap().ran);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_counts() {
        let before = Usage::now().unwrap();
        let mut sum = 0_u64;
        while (Usage::now().unwrap() - before).ran.is_zero() {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
