//! What floods there are. What each does stands in the example `flood` of `godwit-lab`.

/// A flood as it is run here.
pub(super) struct Kind {
    /// Its name in the example.
    pub(super) name: &'static str,
    /// How often a second it does what it does; 0 is as often as it goes.
    pub(super) rate: u32,
    /// How often at most.
    pub(super) count: Option<u64>,
    /// How many times as long as the others it takes.
    pub(super) times: u64,
}

const fn kind(name: &'static str, rate: u32) -> Kind {
    Kind { name, rate, count: None, times: 1 }
}

pub(super) const KINDS: [Kind; 42] = [
    kind("initials", 2000),
    kind("partial-hellos", 2000),
    kind("early-data", 100),
    kind("half-open", 2000),
    kind("short-packets", 20_000),
    kind("stateless-resets", 20_000),
    kind("unknown-versions", 20_000),
    kind("garbage", 20_000),
    kind("churn", 400),
    kind("migrations", 400),
    kind("abandoned-requests", 4000),
    kind("streams", 4000),
    kind("settings", 4000),
    kind("large-settings", 4000),
    kind("unknown-frames", 4000),
    kind("empty-data", 4000),
    kind("priorities", 4000),
    kind("slow-readers", 0),
    kind("slow-writers", 0),
    // So many handshakes take a while, and what they leave is to be seen as well.
    Kind { name: "idle", rate: 1000, count: Some(10_000), times: 3 },
    kind("pings", 4000),
    kind("path-challenges", 4000),
    kind("new-connection-ids", 4000),
    // No faster than the server gives others.
    kind("retired-connection-ids", 500),
    kind("crypto", 4000),
    kind("acknowledgements", 4000),
    kind("ack-ranges", 4000),
    kind("ack-frequency", 4000),
    kind("immediate-acks", 4000),
    kind("single-bytes", 4000),
    kind("gaps", 4000),
    kind("empty-frames", 4000),
    kind("windows", 4000),
    kind("window-bytes", 4000),
    kind("resets", 4000),
    kind("stops", 4000),
    kind("blocked", 4000),
    // Over TCP, which not every server of others has.
    kind("h2-resets", 4000),
    kind("h2-continuations", 4000),
    kind("h2-pings", 4000),
    kind("h2-settings", 4000),
    // A PING a second on each of its connections, behind its requests.
    kind("h2-slow-readers", 8),
];
