//! What programs do to be measured.

/// What a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Download,
    Upload,
    /// Of 512 bytes, answered with 8 KiB.
    Requests {
        streams: usize,
    },
    Handshakes {
        at_once: usize,
    },
    /// Connections that do nothing.
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) work: Work,
    /// Godwit at one end and another at the other.
    pub(super) crossed: bool,
}

const fn alone(name: &'static str, work: Work) -> Scenario {
    Scenario { name, work, crossed: false }
}

const fn crossed(name: &'static str, work: Work) -> Scenario {
    Scenario { name, work, crossed: true }
}

pub(super) const ALL: [Scenario; 11] = [
    alone("download", Work::Download),
    alone("upload", Work::Upload),
    alone("requests, 1 stream", Work::Requests { streams: 1 }),
    alone("requests, 20 streams", Work::Requests { streams: 20 }),
    alone("requests, 100 streams", Work::Requests { streams: 100 }),
    alone("handshakes, 1 at a time", Work::Handshakes { at_once: 1 }),
    alone("handshakes, 8 at a time", Work::Handshakes { at_once: 8 }),
    alone("idle connections", Work::Idle),
    crossed("download, crossed", Work::Download),
    crossed("upload, crossed", Work::Upload),
    crossed("requests, 100 streams, crossed", Work::Requests { streams: 100 }),
];

impl Work {
    /// The unit of its rate; nothing has a rate that does nothing.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Work::Download | Work::Upload => "Mbit/s",
            Work::Requests { .. } | Work::Handshakes { .. } => "1/s",
            Work::Idle => "",
        }
    }
}
