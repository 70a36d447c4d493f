//! Many downloads, so many of them at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sink::Destination;
use super::timing::Timing;
use super::{Download, Observer};
use crate::client::Client;
use crate::error::Error;
use crate::server::Versions;

/// Many downloads, by number, and who follows them. They are asked for one by one, so that there may be millions.
pub trait Batch: Send + Sync + 'static {
    /// How many there are; their numbers are below that.
    fn count(&self) -> u64;

    /// One of them, and where it goes. With `None` it is left out.
    fn download(&self, number: u64) -> Option<(Download, Destination)>;

    /// Who follows it. By default nobody does.
    fn observer(&self, number: u64) -> Box<dyn Observer + '_> {
        let _ = number;
        Box::new(())
    }

    /// It is over.
    fn on_done(&self, number: u64, timing: &Timing, outcome: Result<(), Error>);
}

/// Runs all of them, `parallel` at a time, begun in the order of their numbers. Whoever drops the future ends them. In a
/// tokio runtime.
pub async fn run_all<B: Batch>(client: &Client, batch: Arc<B>, parallel: usize) {
    let workers = usize::try_from(batch.count()).unwrap_or(usize::MAX).min(parallel);
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (client, batch, next) = (client.clone(), Arc::clone(&batch), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= batch.count() {
                    return;
                }
                let Some((download, destination)) = batch.download(number) else { continue };
                let (timing, outcome) = {
                    let observer = batch.observer(number);
                    download.run(&client, destination, &*observer).await
                };
                batch.on_done(number, &timing, outcome);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// The order in which URLs are fetched again and again to be measured: those that are to be compared follow each other,
/// so that they meet the same network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rounds {
    /// How many URLs there are.
    pub items: usize,
    /// The versions of HTTP, by which each is fetched in turn. Default one: [`Versions::Auto`].
    pub versions: Vec<Versions>,
    /// How often that is done. Default 1.
    pub rounds: u32,
}

impl Rounds {
    /// Each of so many URLs once.
    #[must_use]
    pub fn new(items: usize) -> Rounds {
        Rounds { items, versions: vec![Versions::Auto], rounds: 1 }
    }

    /// How many downloads that makes.
    #[must_use]
    pub fn count(&self) -> u64 {
        (self.items as u64).saturating_mul(self.versions.len() as u64).saturating_mul(self.rounds.into())
    }

    /// Which URL and versions a download has, by their numbers from 0.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<(usize, Versions)> {
        let versions = self.versions.len() as u64;
        let version = usize::try_from(number.checked_rem(versions)?).ok()?;
        let item = number.checked_div(versions)?.checked_rem(self.items as u64)?;
        let found = (usize::try_from(item).ok()?, *self.versions.get(version)?);
        (number < self.count()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_follows_each_other() {
        let mut rounds = Rounds::new(2);
        rounds.versions = vec![Versions::Http2, Versions::Http3];
        rounds.rounds = 2;
        assert_eq!(rounds.count(), 8);
        let order: Vec<_> = (0..).map_while(|number| rounds.get(number)).collect();
        let once = [(0, Versions::Http2), (0, Versions::Http3), (1, Versions::Http2), (1, Versions::Http3)];
        assert_eq!(order, [once, once].concat());
    }

    #[test]
    fn nothing_is_no_work() {
        assert_eq!((Rounds::new(0).count(), Rounds::new(0).get(0)), (0, None));
        let none = Rounds { versions: Vec::new(), ..Rounds::new(3) };
        assert_eq!((none.count(), none.get(0)), (0, None));
    }
}
