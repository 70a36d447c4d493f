//! After a rush of connections, memory that is free goes back to the system, so that what is seen of the process is what
//! connections take.

use super::Totals;
use godwit_os::heap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often it is looked whether connections still come.
const LOOK: Duration = Duration::from_millis(500);

/// Gives back what this thread keeps whenever no more connections come. Each shard runs one.
pub(super) async fn give_back_what_is_free(totals: Arc<Totals>) {
    let mut rush = Rush::default();
    loop {
        tokio::time::sleep(LOOK).await;
        if rush.is_over(totals.connections.load(Ordering::Relaxed)) {
            heap::give_back();
        }
    }
}

/// Connections that come one soon after the other.
#[derive(Debug, Default)]
struct Rush {
    /// How many connections there had been when it was looked last.
    seen: u64,
    /// How many when the last rush was over.
    before: u64,
}

impl Rush {
    /// Whether connections have come, and no more since the last look. There have been so many by now. True once for each
    /// rush: what happens on connections that there are, or nothing, is none.
    fn is_over(&mut self, connections: u64) -> bool {
        if std::mem::replace(&mut self.seen, connections) != connections {
            return false;
        }
        std::mem::replace(&mut self.before, connections) != connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rush_is_over_once_no_more_connections_come() {
        let mut rush = Rush::default();
        let looks =
            [(0, false), (0, false), (5, false), (9, false), (9, true), (9, false), (10, false), (10, true)];
        for (place, (connections, over)) in looks.into_iter().enumerate() {
            assert_eq!(rush.is_over(connections), over, "look {place}");
        }
    }
}
