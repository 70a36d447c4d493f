//! Writes log lines from a thread of its own: whoever reads them may be slow or stop (a terminal with Ctrl-S, a
//! pager at the end of a pipe), and no request shall wait for that. Lines that find no room are counted instead.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Lines that wait at most.
const WAITING: usize = 1024;
/// What is written at once, in bytes.
const PIECE: usize = 16 << 10;
/// How long the last lines may take.
const PATIENCE: Duration = Duration::from_millis(500);

static STDOUT: LazyLock<Writer> = LazyLock::new(|| Writer::new(io::stdout()));

/// Has a line written to the standard output.
pub(super) fn write_line(line: String) {
    STDOUT.write_line(line);
}

/// Waits until the lines so far are written, but not for ever.
pub(super) fn flush() {
    STDOUT.flush();
}

enum Order {
    Line(String),
    /// To be answered when everything before it is written.
    Flush(SyncSender<()>),
}

struct Writer {
    orders: SyncSender<Order>,
    omitted: Arc<AtomicU64>,
}

impl Writer {
    fn new(to: impl Write + Send + 'static) -> Writer {
        let (orders, received) = sync_channel(WAITING);
        let omitted = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&omitted);
        // Without a thread there is no log; that is no reason not to serve.
        let _ =
            std::thread::Builder::new().name("log".to_owned()).spawn(move || work(to, &received, &counted));
        Writer { orders, omitted }
    }

    fn write_line(&self, line: String) {
        if self.orders.try_send(Order::Line(line)).is_err() {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.orders.try_send(Order::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(PATIENCE);
        }
    }
}

fn work(mut to: impl Write, orders: &Receiver<Order>, omitted: &AtomicU64) {
    let mut text = String::new();
    while let Ok(order) = orders.recv() {
        let mut next = Some(order);
        let mut flushed = None;
        while let Some(order) = next {
            match order {
                Order::Line(line) => {
                    text.push_str(&line);
                    text.push('\n');
                }
                Order::Flush(done) => flushed = Some(done),
            }
            next = if text.len() < PIECE && flushed.is_none() { orders.try_recv().ok() } else { None };
        }
        // Whoever read the log may have gone; serving goes on.
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        text.clear();
        let count = omitted.swap(0, Ordering::Relaxed);
        if count > 0 {
            text = format!("({count} lines left out: they were not read fast enough)\n");
        }
        if let Some(done) = flushed {
            let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
            text.clear();
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// Takes nothing until its gate is open.
    #[derive(Clone, Default)]
    struct Gated(Arc<(Mutex<(bool, String)>, Condvar)>);

    impl Gated {
        fn open(&self) {
            self.0.0.lock().unwrap().0 = true;
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            self.0.0.lock().unwrap().1.clone()
        }
    }

    impl Write for Gated {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let guard = self.0.0.lock().unwrap();
            let mut guard = self.0.1.wait_while(guard, |(open, _)| !*open).unwrap();
            guard.1.push_str(std::str::from_utf8(data).unwrap());
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_who_has_stopped() {
        let to = Gated::default();
        let writer = Writer::new(to.clone());
        for n in 0..3 * WAITING {
            writer.write_line(format!("line {n}"));
        }
        assert_eq!(to.text(), "", "and still this goes on");
        to.open();
        // The first order after the jam may find no room either.
        while !to.text().contains("lines left out") {
            writer.flush();
        }
        let text = to.text();
        assert!(text.starts_with("line 0\nline 1\n"), "in order: {text:.100}");
        let written = text.lines().filter(|line| line.starts_with("line ")).count();
        let omitted: usize =
            text.lines().find_map(|line| line.strip_prefix('(')?.split(' ').next()?.parse().ok()).unwrap();
        assert_eq!(written + omitted, 3 * WAITING, "every line is written or counted");
    }

    #[test]
    fn what_was_said_is_written_when_flushed() {
        let to = Gated::default();
        to.open();
        let writer = Writer::new(to.clone());
        writer.write_line("a".to_owned());
        writer.write_line("b".to_owned());
        while to.text() != "a\nb\n" {
            writer.flush();
        }
    }
}
