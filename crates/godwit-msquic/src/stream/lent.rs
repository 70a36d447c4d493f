//! Memory of the application's that is lent for sending, and given back by an event.
//!
//! The transport holds on to it until the peer has acknowledged the bytes, or nobody is to get them any more, and drops it
//! then. That is the moment from which on the application may use it again, and no other is.

use godwit_base::slab::Key;
use std::sync::{Arc, Mutex, PoisonError};

/// Which memory was given back, to be told.
#[derive(Debug, Default)]
pub(crate) struct GivenBack(Mutex<Vec<Loan>>);

/// A send of a stream: the memory of all its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loan {
    /// The stream.
    pub(crate) stream: Key,
    /// The number of the send on that stream.
    pub(crate) send: u64,
}

impl GivenBack {
    /// Takes what was given back since it was taken last.
    pub(crate) fn take(&self) -> Vec<Loan> {
        let mut loans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if loans.is_empty() { Vec::new() } else { std::mem::take(&mut loans) }
    }

    fn push(&self, loan: Loan) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(loan);
    }
}

/// A loan that ends when the last of its buffers is dropped.
#[derive(Debug)]
pub(crate) struct OpenLoan {
    loan: Loan,
    to: Arc<GivenBack>,
}

impl OpenLoan {
    /// It will be given back to `to`.
    pub(crate) fn new(loan: Loan, to: Arc<GivenBack>) -> Arc<Self> {
        Arc::new(OpenLoan { loan, to })
    }
}

impl Drop for OpenLoan {
    fn drop(&mut self) {
        self.to.push(self.loan);
    }
}

/// One buffer of the application's.
#[derive(Debug)]
pub(crate) struct LentBuffer {
    start: *const u8,
    length: usize,
    _loan: Arc<OpenLoan>,
}

// SAFETY: it is only read, and whoever lends it leaves it as it is until it is given back, on whatever thread.
unsafe impl Send for LentBuffer {}
// SAFETY: as above.
unsafe impl Sync for LentBuffer {}

impl LentBuffer {
    /// A buffer that is read until it is dropped.
    ///
    /// # Safety
    /// There are `length` bytes at `start`, which stay there and as they are until the loan has been given back.
    pub(crate) const unsafe fn new(start: *const u8, length: usize, loan: Arc<OpenLoan>) -> Self {
        LentBuffer { start, length, _loan: loan }
    }
}

impl AsRef<[u8]> for LentBuffer {
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
        let open = OpenLoan::new(loan, Arc::clone(&given_back));
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
        assert!(given_back.take().is_empty());
        drop(rest.split_off(1));
        drop(rest);
        assert_eq!(given_back.take(), [loan]);
        assert!(given_back.take().is_empty());
    }
}
