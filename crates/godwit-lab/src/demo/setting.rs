//! What the figures depend on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use godwit_relay::RelayCounters;

use super::preset::{Conditions, Preset};

/// What the figures depend on.
#[derive(Debug)]
pub struct Setting {
    pub(super) preset: Preset,
    pub(super) conditions: Conditions,
    /// How many files the page needs besides itself.
    pub(super) objects: u16,
    /// The congestion control of the kernel's TCP.
    pub(super) control: String,
    pub(super) visitors: u16,
    pub(super) seconds: u64,
    pub(super) seed: u64,
    pub(super) counters: Arc<RelayCounters>,
}

impl Setting {
    /// For how long visitors come.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Which TCP carries HTTP/2.
    pub(super) fn tcp_in_words(&self) -> String {
        let unlike = match self.control.as_str() {
            "bbr" => "",
            _ => " Its congestion control is another than HTTP/3's (BBR), and that is part of what you see.",
        };
        format!(
            "TCP: this kernel's own ({}). The packets of both protocols cross the same modelled link, between two \
             network namespaces.{unlike}",
            self.control
        )
    }

    /// Packets that left the link late, from 0 to 1.
    pub(super) fn late_share(&self) -> f64 {
        share(self.counters.late.load(Ordering::Relaxed), self.counters.delivered.load(Ordering::Relaxed))
    }

    /// Packets that were lost or found the queue full, from 0 to 1.
    pub(super) fn lost_share(&self) -> f64 {
        share(self.counters.dropped.load(Ordering::Relaxed), self.counters.packets.load(Ordering::Relaxed))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A setting for tests of what is printed.
    pub(in crate::demo) fn setting() -> Setting {
        Setting {
            preset: Preset::Mobile,
            conditions: Preset::Mobile.conditions(),
            objects: crate::demo::site::FEW_OBJECTS,
            control: "cubic".to_owned(),
            visitors: 91,
            seconds: 40,
            seed: 1,
            counters: Arc::default(),
        }
    }

    #[test]
    fn it_says_which_tcp_it_is() {
        assert!(setting().tcp_in_words().contains("another than HTTP/3's"));
        let bbr = Setting { control: "bbr".to_owned(), ..setting() };
        assert!(bbr.tcp_in_words().ends_with("namespaces."));
        assert!(setting().late_share().abs() < 1e-9);
    }
}
