//! Something again and again, in several places at the same time.

use anyhow::{Context, Result};
use peer_perf::Timings;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What each place does, from one of its times to the next.
pub trait Place: 'static {
    fn once(&mut self) -> impl Future<Output = Result<()>>;
}

pub async fn repeat(places: Vec<impl Place>, time: Duration) -> Result<Timings> {
    let timings = Rc::new(RefCell::new(Timings::begin(time)));
    let mut tasks = JoinSet::new();
    for mut place in places {
        let timings = timings.clone();
        tasks.spawn_local(async move {
            while timings.borrow().goes_on() {
                let start = std::time::Instant::now();
                place.once().await?;
                timings.borrow_mut().record(start);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(Rc::into_inner(timings).context("a task goes on")?.into_inner())
}
