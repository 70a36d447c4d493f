//! Exchanging the process for a new one of the same program, without refusing or cutting off anybody (SIGUSR2).
//!
//! The new process is started with the same arguments from the file that the program was started from, whatever is
//! there by now. It gets the UDP sockets with the connections on them ([`godwit::Generation`]), the listening TCP
//! sockets with those who wait in them, and the keys of TLS session tickets; it opens the access log itself, and reads
//! configuration and certificates anew. When everything that can fail is done it receives and accepts, and only then
//! does the old process stop, tell its clients, and end with the last of them. If the new process fails before, or does
//! not get there in [`READY_WITHIN`], it is ended, and the old one goes on as if nothing had been tried.
//!
//! The first process of a container (number 1) does not hand over: with its end all others there end.
//!
//! What the new one does not want (an address that the configuration no longer names) stays with the old one for as
//! long as that has connections there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use tokio::net::TcpListener;

use super::h3;
use super::inherited::Role;
use super::listen::Tcp;
#[cfg(target_os = "linux")]
use super::sessions::{SESSIONS, write_sessions};
use crate::FrontError;
use godwit_certificates::Store;

/// How long the new process may take until it serves.
#[cfg(target_os = "linux")]
const READY_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);

/// The process whose end is that of all others in its namespace (`pid_namespaces(7)`).
#[cfg(target_os = "linux")]
const FIRST: u32 = 1;

#[cfg(target_os = "linux")]
const ENDS_ALL: &str = "it is the first process of its container (number 1), with whose end all others there would end; \
    start another container beside this one and then end this one, or let a supervisor run the server";

/// What this process leaves beside its UDP sockets.
pub(super) struct HandOver {
    program: PathBuf,
    /// They are closed when nobody accepts from them any more.
    listeners: Vec<(Role, bool, Weak<TcpListener>)>,
    store: Store,
}

impl HandOver {
    /// # Errors
    /// If the system does not say which program this is.
    pub(super) fn new(store: &Store) -> Result<HandOver, FrontError> {
        let unknown = |error: std::io::Error| {
            FrontError::new(format!(
                "cannot tell which program this is: {}",
                godwit_text::plain_error(&error)
            ))
        };
        Ok(HandOver { program: program().map_err(unknown)?, listeners: Vec::new(), store: store.clone() })
    }

    pub(super) fn add(&mut self, role: Role, tcp: &Tcp) {
        self.listeners.push((role, tcp.is_lent, Arc::downgrade(&tcp.listener)));
    }

    /// Starts the successor and has it take over. Returns its process id. Whoever drops this before it is ready ends
    /// the successor.
    ///
    /// # Errors
    /// Why it did not take over, for a person.
    #[cfg(target_os = "linux")]
    pub(super) async fn hand_over(&self, http3: &[h3::Running]) -> Result<u32, String> {
        use godwit::{Generation, Successor};
        use std::process::Command;

        if std::process::id() == FIRST {
            return Err(ENDS_ALL.to_owned());
        }
        let mut command = Command::new(&self.program);
        command.args(std::env::args_os().skip(1));
        // These are about this process, or were for it alone.
        for variable in ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        let plain = |error: std::io::Error| godwit_text::plain_error(&error);
        let mut successor = Successor::new(command).timeout(READY_WITHIN);
        for (role, is_lent, listener) in &self.listeners {
            let Some(listener) = listener.upgrade() else { continue };
            let listener = std::os::fd::AsFd::as_fd(&*listener).try_clone_to_owned().map_err(plain)?;
            successor = successor.descriptor(role.name(*is_lent), listener);
        }
        successor = successor.descriptor(SESSIONS, write_sessions(&self.store.sessions()).map_err(plain)?);
        let generation = http3.iter().fold(Generation::new(), |generation, running| running.join(generation));
        let child = generation.hand_over(successor).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                format!("{}: {}", self.program.display(), plain(error))
            }
            std::io::ErrorKind::TimedOut => {
                format!("it was not ready within {} s, and was ended", READY_WITHIN.as_secs())
            }
            _ => error.to_string(),
        })?;
        Ok(child.id())
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) async fn hand_over(&self, _: &[h3::Running]) -> Result<u32, String> {
        let _ = (&self.program, &self.listeners, &self.store);
        Err("only Linux lets one process take over the connections of another; restart the server".to_owned())
    }
}

/// Where the program was started from. If that was a link, the link: it may lead to a newer version later.
fn program() -> std::io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let called = std::env::args_os().next().map(PathBuf::from);
    match called.filter(|called| called.components().count() > 1) {
        Some(called) if is_same(&called, &running) => std::path::absolute(called),
        _ => Ok(without_mark(running)),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Linux marks the name of a program that was replaced since it was started.
fn without_mark(running: PathBuf) -> PathBuf {
    let name = running.to_str().and_then(|name| name.strip_suffix(" (deleted)"));
    match name.map(PathBuf::from) {
        Some(original) if !running.exists() => original,
        _ => running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_has_its_name_still() {
        let program = program().unwrap();
        assert!(program.is_absolute() && program.is_file(), "{}", program.display());
        assert_eq!(without_mark(program.clone()), program);
        let replaced = PathBuf::from("/no/such/godwit (deleted)");
        assert_eq!(without_mark(replaced), PathBuf::from("/no/such/godwit"));
    }
}
