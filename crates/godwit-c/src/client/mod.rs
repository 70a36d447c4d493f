//! The HTTP client.

mod options;
mod request;

#[cfg(test)]
pub(crate) use request::godwit_client_request;

use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles::{self, Kind, Thing};
use crate::queue::Queue;
use crate::runtime;
use crate::subject::Subject;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// An HTTP client.
pub(crate) struct Client {
    pub(crate) subject: Arc<Subject>,
    runtime: Handle,
    client: godwit_client::Client,
    receive_limit: u64,
    send_limit: u64,
    /// What every exchange under way has a clone of; `None` once it takes no more.
    under_way: Mutex<Option<UnderWay>>,
}

/// Nothing is ever sent by it: it is there until nobody has a clone any more.
struct UnderWay {
    token: mpsc::Sender<()>,
    all_gone: mpsc::Receiver<()>,
}

impl Thing for Client {
    const KIND: Kind = Kind::Client;

    /// Ends its exchanges, and its connections with them.
    fn close(&self) {
        self.subject.close();
        drop(self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take());
        let client = self.client.clone();
        self.runtime.spawn(async move { client.close().await });
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Client {
    /// Lets the exchanges under way end, closes the connections, and tells.
    fn shut_down(self: &Arc<Self>) -> Result<(), Failure> {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take();
        let again = || Failure::new(abi::ERROR_STATE, "the client was shut down before; once is enough");
        let UnderWay { token, mut all_gone } = under_way.ok_or_else(again)?;
        let client = Arc::clone(self);
        self.runtime.spawn(async move {
            drop(token);
            all_gone.recv().await;
            client.client.close().await;
            client.subject.tell(client.subject.event(abi::EVENT_CLIENT_STOPPED));
        });
        Ok(())
    }

    /// What an exchange holds while it is under way.
    fn token(&self) -> Result<mpsc::Sender<()>, Failure> {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || Failure::new(abi::ERROR_CLOSED, "the client was shut down; make another one");
        under_way.as_ref().map(|under_way| under_way.token.clone()).ok_or_else(closed)
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_client_create(
    queue: u64,
    options: *const abi::ClientOptions,
    tag: u64,
    client: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(client, "the place for the client's handle")?;
        let queue = handles::get::<Queue>(queue)?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take_or_default(options) }?;
        let runtime = runtime::find(options.runtime)?;
        // SAFETY: the caller's promise.
        let builder = unsafe { options::builder(&options) }?;
        let inner = {
            let _within = runtime.enter();
            builder.build().map_err(|error| options::failure(&error))?
        };
        let (token, all_gone) = mpsc::channel(1);
        let made = handles::insert(|handle| {
            Arc::new(Client {
                subject: Subject::new(handle, tag, queue),
                runtime,
                client: inner,
                receive_limit: options.receive_limit,
                send_limit: options.send_limit,
                under_way: Mutex::new(Some(UnderWay { token, all_gone })),
            })
        })?;
        // SAFETY: the caller's promise.
        unsafe { given::put(client, made.subject.handle, "the place for the client's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_client_shutdown(client: u64, error: *mut abi::Error) -> i32 {
    let act = || handles::get::<Client>(client)?.shut_down();
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
