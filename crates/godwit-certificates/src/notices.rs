//! What an operator should know of a server that runs.

use std::fmt;
use std::sync::Arc;

/// Takes sentences for whoever looks after the server: what was renewed, what failed and is tried again. Those that
/// need attention begin with `warning: `. Clones are the same.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Calls `act` with each sentence, from whatever thread.
    pub fn new(act: impl Fn(&str) + Send + Sync + 'static) -> Notices {
        Notices(Arc::new(act))
    }

    /// To nobody.
    pub fn ignored() -> Notices {
        Notices::new(|_| {})
    }

    /// Passes one on.
    pub fn say(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
