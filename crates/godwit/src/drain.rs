//! Ending without cutting anybody off.

use crate::access::WaitUntil;
use crate::handler::{Api, Topic};
use godwit_engine::{ShardCx, ShardHandle};
use std::time::Duration;

/// Takes no new connections and waits until those that exist are over, or for `limit`. Those that are left then are
/// closed with code 0; returns how many.
pub(crate) async fn drain(shards: &[ShardHandle<Api>], limit: Duration) -> usize {
    shards.iter().for_each(|shard| shard.with(|cx, api| api.drain(cx)));
    if tokio::time::timeout(limit, all_idle(shards)).await.is_ok() {
        return 0;
    }
    let left = shards.iter().map(|shard| shard.peek(|cx, _| cx.endpoint().connections())).sum();
    for shard in shards {
        shard.with(|cx, api| api.close(cx));
        shard.close(0, b"");
    }
    all_idle(shards).await;
    left
}

async fn all_idle(shards: &[ShardHandle<Api>]) {
    for shard in shards {
        wait_idle(shard).await;
    }
}

/// Waits until there is nothing left to do.
pub(crate) async fn wait_idle(shard: &ShardHandle<Api>) {
    let attempt = |shard: &mut ShardCx<'_>, api: &mut Api| {
        let idle = api.stopped.is_some() || shard.endpoint().is_idle();
        (idle.then_some(()), false)
    };
    WaitUntil::endpoint(shard, Topic::Idle, attempt).await;
}
