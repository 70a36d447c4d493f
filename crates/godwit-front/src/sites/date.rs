//! The `Date` of responses (RFC 9110 section 6.6.1), which is the same for all of one second.

use std::cell::RefCell;

use godwit_text::{http_date, unix_now};
use http::HeaderValue;

thread_local! {
    /// A second, since 1970, and its date.
    static LAST: RefCell<(i64, HeaderValue)> = const { RefCell::new((-1, HeaderValue::from_static(""))) };
}

/// The present one.
pub(super) fn now() -> HeaderValue {
    of(unix_now())
}

fn of(second: i64) -> HeaderValue {
    LAST.with_borrow_mut(|(known, date)| {
        if *known != second {
            // It consists of letters, digits and spaces.
            *date = HeaderValue::try_from(http_date(second)).unwrap_or(HeaderValue::from_static(""));
            *known = second;
        }
        date.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_has_its_date() {
        for second in [0, 0, 784_111_777, 784_111_778, 0] {
            assert_eq!(of(second).to_str().unwrap(), http_date(second));
        }
        assert_eq!(of(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
