//! Connections that do nothing: how much memory they take is looked at from outside.

use std::io::Read;

/// Says that so many connections are open.
pub fn opened(connections: usize) {
    println!("open {connections}");
}

/// Returns when nobody needs them any more, which is when the standard input ends.
pub fn until_released() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
