//! What the local system did not send, though it was counted as sent.
//!
//! There was no route, a filter forbade it, or it was larger than the interface carries: that it is lost says nothing of
//! congestion (RFC 9002 section 7.3 is about losses in the network), nor of marks or the path's MTU. It is known by
//! when it was sent, which is the same for all packets of a batch.

use godwit_base::Time;

/// Spans remembered: enough for what may be found lost at once.
const SPANS: usize = 4;

/// Spans of time, ends included, in which nothing that was sent left this host.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// The newest first.
    spans: [Option<(Time, Time)>; SPANS],
    /// The newest may go on: nothing sent since it began has been acknowledged.
    open: bool,
}

impl Refused {
    /// What was sent at `sent_at` did not leave.
    pub(crate) fn on_refused(&mut self, sent_at: Time) {
        if let [Some((first, last)), ..] = &mut self.spans
            && (self.open || *last == sent_at)
        {
            *last = (*last).max(sent_at);
            *first = (*first).min(sent_at);
            return;
        }
        self.spans.rotate_right(1);
        let [newest, ..] = &mut self.spans;
        *newest = Some((sent_at, sent_at));
        self.open = true;
    }

    /// Something sent at `sent_at` was acknowledged.
    pub(crate) fn on_acked(&mut self, sent_at: Time) {
        if let [Some((first, _)), ..] = self.spans
            && sent_at >= first
        {
            self.open = false;
        }
    }

    /// Whether what was sent at `sent_at` did not leave.
    pub(crate) fn covers(&self, sent_at: Time) -> bool {
        self.spans.iter().flatten().any(|(first, last)| (*first..=*last).contains(&sent_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn a_span_lasts_until_something_is_acknowledged() {
        let mut refused = Refused::default();
        assert!(!refused.covers(Time::ZERO));
        refused.on_refused(at(10));
        refused.on_acked(at(9));
        refused.on_refused(at(30));
        assert!(refused.covers(at(10)) && refused.covers(at(20)) && refused.covers(at(30)));
        assert!(!refused.covers(at(9)) && !refused.covers(at(31)));
        refused.on_acked(at(31));
        refused.on_refused(at(50));
        assert!(refused.covers(at(50)) && !refused.covers(at(40)));
        for nanos in [60, 70, 80] {
            refused.on_acked(at(nanos - 1));
            refused.on_refused(at(nanos));
        }
        assert!(refused.covers(at(50)) && !refused.covers(at(20)), "the oldest is forgotten");
    }
}
