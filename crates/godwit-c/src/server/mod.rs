//! The HTTP server.

mod options;
mod requests;

use crate::abi::{self, Plain};
use crate::border::call;
use crate::failure::Failure;
use crate::given::{self, Places};
use crate::handles::{self, Kind, Thing};
use crate::introductions::Introductions;
use crate::queue::Queue;
use crate::runtime;
use crate::subject::Subject;
use crate::words::fixed;
use godwit_front::Running;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// Requests that the application may not have heard of; more wait, as long as their clients do.
pub(crate) const MOST_NEW_REQUESTS: usize = 256;

/// An HTTP server.
pub(crate) struct Server {
    pub(crate) subject: Arc<Subject>,
    runtime: Handle,
    receive_limit: u64,
    send_limit: u64,
    /// Requests.
    introductions: Introductions,
    /// What runs, from the start to the end of it.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    addresses: Vec<SocketAddr>,
}

impl Thing for Server {
    const KIND: Kind = Kind::Server;

    /// Ends it at once.
    fn close(&self) {
        self.subject.close();
        self.end();
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Server {
    fn take_running(&self) -> Option<Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).running.take()
    }

    /// Keeps what runs. Whoever closed the server before has not seen it, so that it is ended here.
    fn keep(&self, running: Running) -> Result<(), Failure> {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.addresses = running.addresses().to_vec();
            state.running = Some(running);
        }
        if self.subject.is_closed() {
            self.end();
            return Err(Failure::new(abi::ERROR_CLOSED, "the server was closed while it started"));
        }
        Ok(())
    }

    /// Ends it at once, unless somebody else does.
    fn end(&self) {
        if let Some(mut running) = self.take_running() {
            self.runtime.spawn(async move { running.shutdown(Duration::ZERO).await });
        }
    }

    /// Ends it in good order, and tells.
    fn shut_down(self: &Arc<Self>, grace: Duration) -> Result<(), Failure> {
        let again = || Failure::new(abi::ERROR_STATE, "the server was shut down before; once is enough");
        let mut running = self.take_running().ok_or_else(again)?;
        let server = Arc::clone(self);
        self.runtime.spawn(async move {
            let cut = running.shutdown(grace).await;
            let event = server.subject.event(abi::EVENT_SERVER_STOPPED);
            server.subject.tell(event.with_code(cut.requests()));
        });
        Ok(())
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone()
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_server_create(
    queue: u64,
    options: *const abi::ServerOptions,
    tag: u64,
    server: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(server, "the place for the server's handle")?;
        let queue = handles::get::<Queue>(queue)?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take(options) }?;
        // SAFETY: the caller's promise.
        let builder = unsafe { options::builder(&options) }?;
        let runtime = runtime::find(options.runtime)?;
        let made = handles::insert(|handle| {
            Arc::new(Server {
                subject: Subject::new(handle, tag, queue),
                runtime: runtime.clone(),
                receive_limit: options.receive_limit,
                send_limit: options.send_limit,
                introductions: Introductions::new(MOST_NEW_REQUESTS),
                state: Mutex::default(),
            })
        })?;
        let builder = requests::serve(builder, &made);
        let started = runtime::run(&runtime, async move {
            let start = async { builder.bind()?.start().await };
            start.await.map_err(|error| Failure::new(abi::ERROR_CONNECT, error.to_string()))
        });
        let running = started.inspect_err(|_| {
            // The application never hears of it.
            let _ = handles::close(made.subject.handle);
        })?;
        made.keep(running)?;
        // SAFETY: the caller's promise.
        unsafe { given::put(server, made.subject.handle, "the place for the server's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_server_addresses(
    server: u64,
    addresses: *mut abi::Address,
    capacity: u64,
    count: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let all = handles::get::<Server>(server)?.addresses();
        // SAFETY: the caller's promise.
        let places = unsafe { Places::of(addresses, capacity) }?;
        for (number, address) in all.iter().enumerate() {
            let text = fixed(&address.to_string()).0;
            places.put(number, &abi::Address { text, ..abi::Address::zeroed() });
        }
        // SAFETY: the caller's promise.
        unsafe { given::put(count, all.len() as u64, "the place for the number of addresses") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_server_shutdown(
    server: u64,
    grace_ms: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || handles::get::<Server>(server)?.shut_down(Duration::from_millis(grace_ms));
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::{Http, close};
    use std::net::UdpSocket;

    #[test]
    fn a_server_that_was_closed_while_it_started_does_not_run() {
        let http = Http::new(0);
        let server = handles::get::<Server>(http.server).unwrap();
        let running = server.take_running().unwrap();
        close(http.server);
        assert_eq!(server.keep(running).unwrap_err().status, abi::ERROR_CLOSED);
        let address = server.addresses()[0];
        // It ends on a thread of the library; if it did not, this would not.
        while UdpSocket::bind(address).is_err() {
            std::thread::yield_now();
        }
    }
}
