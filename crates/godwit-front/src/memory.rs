//! After a rush, memory that is free goes back to the system.

use std::time::Duration;

use godwit_os::heap;

use crate::shards::Shards;

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(30);
/// How much more must be in memory than after the last time, in bytes.
const GROWN: u64 = 16 << 20;

/// Gives back what is free whenever the program has grown. Ends where the system does not say how large it is.
pub(super) async fn give_back_what_is_free(shards: Shards) {
    let mut before = heap::resident();
    while let Some(small) = before {
        tokio::time::sleep(LOOK).await;
        let Some(now) = heap::resident() else { return };
        if now > small.saturating_add(GROWN) {
            give_back(&shards).await;
            before = heap::resident();
        } else if now < small {
            before = Some(now);
        }
    }
}

/// Gives back what is free: of each shard's thread, by itself, where that is how the allocator keeps it.
async fn give_back(shards: &Shards) {
    if heap::BY_THREAD {
        for runtime in shards.runtimes() {
            let _ = runtime.spawn(async { heap::give_back() }).await;
        }
    } else {
        // It takes its time if there is much.
        let _ = tokio::task::spawn_blocking(heap::give_back).await;
    }
}
