//! The objects of the process: registrations, configurations and listeners. Connections and streams belong to workers.

use crate::abi::Handle;
use crate::handle::{self, Kind};
use godwit_base::Slab;
use std::sync::{Arc, Mutex, PoisonError};

/// All objects of one kind, by their handles.
pub(crate) struct Table<T> {
    kind: Kind,
    objects: Mutex<Slab<Arc<T>>>,
}

impl<T> Table<T> {
    /// A table of nothing.
    pub(crate) const fn new(kind: Kind) -> Self {
        Table { kind, objects: Mutex::new(Slab::new()) }
    }

    /// Keeps an object, and gives it a handle. `None` if there are as many as there can be.
    pub(crate) fn insert(&self, object: Arc<T>) -> Option<Handle> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        (objects.len() < handle::MOST).then(|| handle::handle(self.kind, 0, objects.insert(object)))
    }

    /// What a handle stands for.
    pub(crate) fn get(&self, handle: Handle) -> Option<Arc<T>> {
        let place = handle::parts(handle).filter(|parts| parts.kind == self.kind)?.place;
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let key = handle::find(&objects, place)?;
        objects.get(key).cloned()
    }

    /// Takes an object out: its handle stands for nothing from now on.
    pub(crate) fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        let place = handle::parts(handle).filter(|parts| parts.kind == self.kind)?.place;
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let key = handle::find(&objects, place)?;
        objects.remove(key)
    }

    /// Takes all of them out.
    pub(crate) fn clear(&self) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<_> = objects.iter().map(|(key, _)| key).collect();
        let gone: Vec<_> = keys.into_iter().filter_map(|key| objects.remove(key)).collect();
        drop(objects);
        // What ends with them may look here.
        drop(gone);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.iter().map(|(_, object)| Arc::clone(object)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_stands_for_its_object_until_that_is_taken_out() {
        let table = Table::new(Kind::Listener);
        let handle = table.insert(Arc::new(7)).unwrap();
        assert_eq!(table.get(handle).as_deref(), Some(&7));
        assert_eq!(Table::<u8>::new(Kind::Listener).get(handle), None);
        assert_eq!(table.remove(handle).as_deref(), Some(&7));
        assert_eq!((table.get(handle), table.remove(handle)), (None, None));
        let other = Table::new(Kind::Configuration);
        let wrong = other.insert(Arc::new(8)).unwrap();
        assert_eq!(table.get(wrong), None);
        assert_eq!(other.all().len(), 1);
    }
}
