//! Memory of the application's that is lent for sending, and given back by an event.
//!
//! The transport holds on to it until the peer has acknowledged the bytes, or nobody is to get them any more, and drops it
//! then. That is the moment from which on the application may use it again, and no other is.

use godwit_base::slab::Key;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Which memory was given back, to be told.
#[derive(Debug, Default)]
pub(crate) struct GivenBack {
    loans: Mutex<Vec<Loan>>,
    /// There are some: mostly there are none, and who asks need not lock.
    are_some: AtomicBool,
}

/// A send of a stream: the memory of all its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loan {
    /// The stream.
    pub(crate) stream: Key,
    /// The number of the send on that stream.
    pub(crate) send: u64,
}

impl GivenBack {
    /// Exchanges what was given back since it was taken last for `into`, which is to be empty. False if there is nothing.
    pub(crate) fn take(&self, into: &mut Vec<Loan>) -> bool {
        if !self.has_some() {
            return false;
        }
        let mut loans = self.loans.lock().unwrap_or_else(PoisonError::into_inner);
        self.are_some.store(false, Ordering::Release);
        std::mem::swap(&mut *loans, into);
        true
    }

    /// Something was given back.
    pub(crate) fn has_some(&self) -> bool {
        self.are_some.load(Ordering::Acquire)
    }

    fn push(&self, loan: Loan) {
        let mut loans = self.loans.lock().unwrap_or_else(PoisonError::into_inner);
        loans.push(loan);
        self.are_some.store(true, Ordering::Release);
    }
}

/// A loan that ends when it is dropped: with its buffer, or the last of its buffers, which share it.
#[derive(Debug)]
pub(crate) struct OpenLoan {
    loan: Loan,
    to: Arc<GivenBack>,
}

impl OpenLoan {
    /// It will be given back to `to`.
    pub(crate) const fn new(loan: Loan, to: Arc<GivenBack>) -> Self {
        OpenLoan { loan, to }
    }
}

impl Drop for OpenLoan {
    fn drop(&mut self) {
        self.to.push(self.loan);
    }
}

/// One buffer of the application's, with its loan, or its share of that.
#[derive(Debug)]
pub(crate) struct LentBuffer<L> {
    start: *const u8,
    length: usize,
    _loan: L,
}

// SAFETY: it is only read, and whoever lends it leaves it as it is until it is given back, on whatever thread.
unsafe impl<L: Send> Send for LentBuffer<L> {}
// SAFETY: as above.
unsafe impl<L: Sync> Sync for LentBuffer<L> {}

impl<L> LentBuffer<L> {
    /// A buffer that is read until it is dropped.
    ///
    /// # Safety
    /// There are `length` bytes at `start`, which stay there and as they are until the loan has been given back.
    pub(crate) const unsafe fn new(start: *const u8, length: usize, loan: L) -> Self {
        LentBuffer { start, length, _loan: loan }
    }
}

impl<L> AsRef<[u8]> for LentBuffer<L> {
    fn as_ref(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: whoever made this has promised it, and it is borrowed no longer than this lives.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use godwit_base::Slab;

    #[test]
    fn a_loan_ends_with_the_last_of_its_bytes() {
        let given_back = Arc::new(GivenBack::default());
        let loan = Loan { stream: Slab::new().insert(()), send: 7 };
        let memory = [1, 2, 3];
        let open = Arc::new(OpenLoan::new(loan, Arc::clone(&given_back)));
        let buffers = [0..2, 2..3].map(|range| {
            let part = &memory[range];
            // SAFETY: the memory is that of this test, and longer there than the buffers.
            Bytes::from_owner(unsafe { LentBuffer::new(part.as_ptr(), part.len(), Arc::clone(&open)) })
        });
        drop(open);
        let mut rest = buffers[0].clone();
        let [first, second] = buffers;
        assert_eq!((&first[..], &second[..]), (&[1, 2][..], &[3][..]));
        drop((first, second));
        let mut taken = Vec::new();
        assert!(!given_back.take(&mut taken));
        drop(rest.split_off(1));
        drop(rest);
        assert!(given_back.take(&mut taken));
        assert_eq!(taken, [loan]);
        assert!(!given_back.take(&mut Vec::new()));
    }
}
