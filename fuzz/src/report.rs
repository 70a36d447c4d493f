//! The readers of `godwit-report`: lines of access logs, which hold what clients say, and files that others wrote. Each
//! function panics if what they give does not hold together, and returns whether the bytes were understood to their end.

use godwit_report::line::Facts;
use godwit_report::qlog::Records;
use godwit_report::{Metric, Sketch, Summary};
use std::io::Cursor;
use std::path::Path;

/// An access log: what was counted of one that is understood can be written and reads the same again.
pub fn access_log(bytes: &[u8]) -> bool {
    let mut understood = true;
    for line in bytes.split(|byte| *byte == b'\n') {
        let facts = Facts::read(line);
        if let Some(facts) = &facts {
            assert!(facts.time != 0 && facts.hour() < 24);
        }
        understood &= facts.is_some();
    }
    if !understood {
        return false;
    }
    let mut summary = Summary::new(&[Metric::FirstByte]);
    for line in bytes.split(|byte| *byte == b'\n') {
        assert!(summary.add_line(line), "a line is understood or not");
    }
    let written = summary.encode();
    let again = Summary::decode(&written).expect("what was counted can be read");
    assert_eq!(again.encode(), written, "what was counted reads the same again");
    true
}

/// A sketch of latencies: what is understood can be written and reads the same again, and its quantiles are in order.
pub fn sketch(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let Some(sketch) = Sketch::decode(&mut rest) else { return false };
    let mut written = Vec::new();
    sketch.encode(&mut written);
    let again = Sketch::decode(&mut written.as_slice()).expect("a sketch that was written can be read");
    assert!(again.bins().eq(sketch.bins()) && again.count() == sketch.count());
    let mut last = 0.0;
    for q in [0.0, 0.5, 0.99, 1.0] {
        let Some(value) = sketch.quantile(q) else {
            assert!(sketch.is_empty());
            break;
        };
        assert!(value.is_finite() && value >= last, "{value} after {last}");
        last = value;
    }
    rest.is_empty()
}

/// A trace of a connection: its events have times that can be reckoned with.
pub fn qlog(bytes: &[u8]) -> bool {
    let mut records = Records::new(Path::new("trace"), Box::new(Cursor::new(bytes.to_vec())));
    if records.header().is_err() {
        return false;
    }
    loop {
        match records.next_event() {
            Ok(Some(event)) => assert!(event.time.as_secs() < 1 << 32),
            Ok(None) => return !records.is_cut_off(),
            Err(error) => {
                assert!(!error.to_string().contains(|c: char| c.is_control()), "{error:?}");
                return false;
            }
        }
    }
}
