//! What a server gives up at its end.

use std::fmt;

use godwit_report::record::Protocol;

/// Requests that were under way when a server ended, and whose clients do not get the whole of a response. Tunnels and
/// WebSockets count as requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// By [`Protocol`].
    requests: [u64; Protocol::ALL.len()],
}

impl Cut {
    pub(crate) const fn of(requests: [u64; Protocol::ALL.len()]) -> Cut {
        Cut { requests }
    }

    /// How many, over all protocols.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum()
    }
}

/// `3 requests (1 of http/1.1, 2 of h3)`.
impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.requests();
        write!(formatter, "{all} request{}", if all == 1 { "" } else { "s" })?;
        let each = Protocol::ALL.iter().zip(self.requests).filter(|(_, count)| *count > 0);
        let each: Vec<String> =
            each.map(|(protocol, count)| format!("{count} of {}", protocol.name())).collect();
        if each.is_empty() { Ok(()) } else { write!(formatter, " ({})", each.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words() {
        assert_eq!(Cut::default().to_string(), "0 requests");
        assert_eq!(Cut::of([0, 0, 1, 0]).to_string(), "1 request (1 of h2)");
        assert_eq!(Cut::of([0, 1, 0, 2]).to_string(), "3 requests (1 of http/1.1, 2 of h3)");
    }
}
