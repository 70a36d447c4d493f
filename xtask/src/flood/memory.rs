//! How much memory a server holds, watched while a flood goes on.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked at. The kernel keeps the peak of what lies between.
const TICK: Duration = Duration::from_millis(50);

/// Looks at a process until it is asked what it saw.
pub(super) struct Watch {
    start: u64,
    over: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

/// What a process held, in KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) start: u64,
    pub(super) peak: u64,
}

impl Memory {
    pub(super) fn grown(self) -> u64 {
        self.peak.saturating_sub(self.start)
    }
}

impl Watch {
    /// From here on.
    pub(super) fn start(process: u32) -> Result<Self, String> {
        let start = line(process, "VmRSS:")?;
        let file = format!("/proc/{process}/clear_refs");
        // 5: the peak of what comes from here on.
        fs::write(&file, "5").map_err(|error| format!("{file}: {error}"))?;
        let (over, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(start)));
        let (ended, most) = (Arc::clone(&over), Arc::clone(&peak));
        let thread = std::thread::spawn(move || {
            loop {
                // Asked before the look, so that the last look is after the end.
                let over = ended.load(Ordering::Relaxed);
                most.fetch_max(line(process, "VmHWM:")?, Ordering::Relaxed);
                if over {
                    return Ok(());
                }
                std::thread::sleep(TICK);
            }
        });
        Ok(Watch { start, over, peak, thread })
    }

    /// What it held from then until now; an error if it has ended meanwhile.
    pub(super) fn finish(self) -> Result<Memory, String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watch over the memory ended".to_owned())??;
        Ok(Memory { start: self.start, peak: self.peak.load(Ordering::Relaxed) })
    }
}

/// A line of a process's status, in KiB.
fn line(process: u32, name: &str) -> Result<u64, String> {
    let file = format!("/proc/{process}/status");
    let text = fs::read_to_string(&file).map_err(|_| "the server has ended".to_owned())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    // A process that has ended and was not waited for has a status without these lines.
    number.ok_or_else(|| "the server has ended".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_what_is_gone_again() {
        let watch = Watch::start(std::process::id()).expect("our own memory");
        let held = std::hint::black_box(vec![1_u8; 40 << 20]);
        drop(held);
        let memory = watch.finish().expect("we live");
        assert!(memory.grown() >= 30 << 10, "{memory:?}");
    }
}
