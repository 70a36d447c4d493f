//! The program that is to take over.

use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

/// The program that [`hand_over`](crate::hand_over()) starts, and what else it gets.
#[derive(Debug)]
pub struct Successor {
    pub(crate) command: Command,
    pub(crate) descriptors: Vec<(String, OwnedFd)>,
    pub(crate) timeout: Duration,
}

impl Successor {
    /// What `command` starts: mostly the same program, perhaps of a newer version, with the same arguments.
    pub fn new(command: Command) -> Self {
        Successor { command, descriptors: Vec::new(), timeout: Duration::from_secs(30) }
    }

    /// Passes a descriptor on under a name, such as a TCP listener. The successor finds it with
    /// [`Inheritance::take_descriptors`](crate::Inheritance::take_descriptors).
    pub fn descriptor(mut self, name: impl Into<String>, descriptor: impl Into<OwnedFd>) -> Self {
        self.descriptors.push((name.into(), descriptor.into()));
        self
    }

    /// Sets how long the program may take to be ready. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}
