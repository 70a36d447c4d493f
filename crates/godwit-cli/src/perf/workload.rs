//! Loads with names: presets of other options; what is given beside them is changed in them.

use std::str::FromStr;

use godwit_lab::perf::ClientOptions;

/// How long a user of `owa` thinks between two requests, in seconds.
const THINK: f64 = 1.0;

/// A load with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    /// 512 bytes up and 8 KiB down, 100 streams on a connection.
    Small,
    /// 512 bytes up and 4000 down, 100 streams on a connection.
    Smaller,
    /// Users who think.
    Owa,
    /// Many connections.
    Many,
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        match text {
            "512x8k" => Ok(Workload::Small),
            "4k" => Ok(Workload::Smaller),
            "owa" => Ok(Workload::Owa),
            "many" => Ok(Workload::Many),
            _ => Err("expected 512x8k, 4k, owa or many".to_owned()),
        }
    }
}

impl Workload {
    /// Changes the usual options to those of the load.
    pub(super) fn preset(self, options: &mut ClientOptions) {
        match self {
            Workload::Small => (options.request, options.response, options.streams) = (512, 8192, 100),
            Workload::Smaller => (options.request, options.response, options.streams) = (512, 4000, 100),
            Workload::Owa => {
                options.connections = 1000;
                options.request = 8192;
                (options.response, options.longest_response) = (2 << 10, Some(32 << 10));
            }
            Workload::Many => {
                (options.connections, options.in_flight) = (50_000, Some(20_000));
                options.memory = true;
            }
        }
    }

    /// Changes what follows from the options that were given.
    pub(super) fn follow(self, options: &mut ClientOptions) {
        if self == Workload::Owa && options.rate.is_none() {
            options.rate = Some(f64::from(options.connections) * f64::from(options.streams) / THINK);
        }
    }
}
