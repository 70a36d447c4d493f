//! What connections that follow were told of a path.

use godwit_recovery::{PathRecovery, PathStats, SavedState};

/// What became of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) sent: u32,
    pub(crate) lost: u32,
}

/// What was told of a path already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    /// Each packet counts once.
    packets: Fate,
    /// At a server: the window that the client knows, for its next connection.
    window: u32,
}

impl Told {
    /// Fewer packets that came after others that were told of say nothing by themselves.
    const LEAST: u32 = 8;
    /// A window of which a client learns is at least this: a little more than the initial one is not worth a token.
    const LEAST_WINDOW: u64 = 60_000;

    /// At a server whose client has brought along what it was told earlier, and is told half of it at first.
    pub(crate) fn after(saved: Option<SavedState>) -> Self {
        Told { window: saved.map_or(0, |saved| clamped(saved.window / 2)), ..Told::default() }
    }

    /// Whether the client should learn of this window: it is worth resuming, and not about what it was told already.
    pub(crate) fn is_worth_a_token(&mut self, window: u64) -> bool {
        let told = u64::from(self.window);
        let changed = window >= told.saturating_mul(2) || window <= told / 2;
        // A path that has become narrow is to be known as one.
        let tells = changed && window.max(told) >= Self::LEAST_WINDOW;
        if tells {
            self.window = clamped(window);
        }
        tells
    }

    /// Whether hardly anything has happened on the path since.
    pub(crate) fn is_all_of(self, path: &PathRecovery) -> bool {
        self.rest(fate(path.stats())).sent < Self::LEAST
    }

    /// The packets of which nothing was told yet; none if they are too few to be told of, and else they are from now on.
    pub(crate) fn go_on(&mut self, stats: &PathStats) -> Option<Fate> {
        let all = fate(stats);
        let rest = self.rest(all);
        if self.packets.sent > 0 && rest.sent < Self::LEAST {
            return None;
        }
        self.packets = all;
        Some(rest)
    }

    fn rest(self, all: Fate) -> Fate {
        let Fate { sent, lost } = self.packets;
        Fate { sent: all.sent.saturating_sub(sent), lost: all.lost.saturating_sub(lost) }
    }
}

fn fate(stats: &PathStats) -> Fate {
    let lost = stats.packets_lost.saturating_sub(stats.spurious_losses);
    Fate { sent: clamped(stats.packets_sent), lost: clamped(lost) }
}

fn clamped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_once() {
        let stats = |sent: u64, lost: u64| {
            let mut stats = PathStats::default();
            (stats.packets_sent, stats.packets_lost, stats.spurious_losses) = (sent, lost + 1, 1);
            stats
        };
        let some = |sent, lost| Some(Fate { sent, lost });
        let mut told = Told::default();
        assert_eq!(told.go_on(&stats(6, 3)), some(6, 3), "few packets, but all there are");
        assert_eq!(told.go_on(&stats(13, 4)), None, "too few more");
        assert_eq!(told.go_on(&stats(14, 4)), some(8, 1));
        assert_eq!(told.go_on(&stats(24, 4)), some(10, 0));
    }
}
