//! What events are about, and the queue that hears of it.

use crate::about::About;
use crate::event::Event;
use crate::queue::Queue;
use std::ops::Deref;
use std::sync::Arc;

/// What events are about, and who hears of it.
pub(crate) struct Subject {
    about: Arc<About>,
    queue: Arc<Queue>,
}

impl Deref for Subject {
    type Target = Arc<About>;

    fn deref(&self) -> &Arc<About> {
        &self.about
    }
}

impl Subject {
    pub(crate) fn new(handle: u64, tag: u64, queue: Arc<Queue>) -> Arc<Subject> {
        Arc::new(Subject { about: About::new(handle, tag, None), queue })
    }

    /// One that belongs to `parent`, and is heard of where that is.
    pub(crate) fn of(parent: &Subject, handle: u64, tag: u64) -> Arc<Subject> {
        let about = About::new(handle, tag, Some(Arc::clone(&parent.about)));
        Arc::new(Subject { about, queue: Arc::clone(&parent.queue) })
    }

    /// Begins an event of it.
    pub(crate) fn event(&self, kind: u32) -> Event {
        Event::new(kind, &self.about)
    }

    /// Tells of something.
    pub(crate) fn tell(&self, event: Event) {
        drop(self.queue.post(event));
    }

    /// The same; what nobody hears comes back, to be dropped where no lock is held: it may close a handle.
    #[must_use = "it is to be dropped without a lock"]
    pub(crate) fn try_tell(&self, event: Event) -> Option<Event> {
        self.queue.post(event)
    }
}
