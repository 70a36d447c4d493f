//! What came of many downloads.

use std::collections::BTreeMap;

use super::timing::Timing;
use crate::error::Error;
use crate::target::Origin;

/// What came of many downloads, in numbers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Downloads that were done.
    pub fetched: u64,
    /// Downloads that failed.
    pub failed: u64,
    /// Bytes of bodies that came.
    pub bytes: u64,
    /// Servers that could not be used, and how many downloads were lost with each after the first.
    unreachable: BTreeMap<Origin, u64>,
}

impl Tally {
    /// One more download is over.
    pub fn add(&mut self, timing: &Timing, is_success: bool) {
        self.bytes = self.bytes.saturating_add(timing.bytes);
        let count = if is_success { &mut self.fetched } else { &mut self.failed };
        *count = count.saturating_add(1);
    }

    /// Whether a failure of a download from `origin` is like one that was asked about before: the whole server cannot be
    /// used, and that was so for another download too.
    pub fn is_known(&mut self, origin: &Origin, error: &Error) -> bool {
        if !error.is_of_origin() {
            return false;
        }
        match self.unreachable.get_mut(origin) {
            Some(more) => {
                *more = more.saturating_add(1);
                true
            }
            None => {
                self.unreachable.insert(origin.clone(), 0);
                false
            }
        }
    }

    /// The servers with failures that [were known](Tally::is_known), and how many these were.
    pub fn known(&self) -> impl Iterator<Item = (&Origin, u64)> {
        self.unreachable.iter().map(|(origin, more)| (origin, *more)).filter(|(_, more)| *more > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::target::Target;

    #[test]
    fn a_server_is_news_once() {
        let [a, b] = ["https://a/", "https://b/"].map(|url| Target::parse(url).unwrap().origin().clone());
        let mut tally = Tally::default();
        let own = Error::new(ErrorKind::Status, "not found");
        let whole = Error::of_origin(ErrorKind::Connect, "no route");
        assert!(!tally.is_known(&a, &own) && !tally.is_known(&a, &own));
        assert!(!tally.is_known(&a, &whole) && !tally.is_known(&b, &whole));
        assert!(tally.is_known(&a, &whole) && tally.is_known(&a, &whole));
        assert_eq!(tally.known().collect::<Vec<_>>(), [(&a, 2)]);
    }
}
