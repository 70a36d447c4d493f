//! The end of a listening TCP socket, without losing those who have just come in.
//!
//! A connection is made by the kernel; whoever is in its queue when the listener is closed is reset, though for the
//! client the connection stands and a request may be on its way. On Linux the listener is therefore told first to
//! drop what begins a connection (a filter on segments with SYN and without ACK), so that a client's system tries
//! again and finds the port closed, or the next server on it. For [`PERIOD`], in which handshakes under way get
//! through, connections are still accepted. Elsewhere the queue is emptied and the socket closed.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

/// About the longest round trip of a client whose last acknowledgement may be on its way.
const PERIOD: Duration = Duration::from_millis(250);

/// Ready when nobody is left who could say that it is time to finish: then there is nothing to wait for.
pub(super) async fn abandoned(mut stop: watch::Receiver<bool>) {
    while stop.changed().await.is_ok() {}
}

/// Says how long to accept from now on; nobody new begins a connection meanwhile.
pub(super) fn refuse_new(listener: &TcpListener) -> Duration {
    if deafen(listener) { PERIOD } else { Duration::from_millis(1) }
}

#[cfg(target_os = "linux")]
fn deafen(listener: &TcpListener) -> bool {
    use socket2::{SockFilter, SockRef};
    // The program sees the TCP header: its flags are in the 14th byte, 2 is SYN and 16 is ACK.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let program = [
        SockFilter::new(LOAD_BYTE, 0, 0, 13),
        SockFilter::new(AND, 0, 0, 0x12),
        SockFilter::new(IF_EQUAL, 0, 1, 0x02),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    SockRef::from(listener).attach_filter(&program).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn deafen(_: &TcpListener) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn those_who_are_in_are_served_and_nobody_else_gets_in() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut early = TcpStream::connect(address).await.unwrap();
        assert_eq!(refuse_new(&listener), PERIOD);
        let late = tokio::spawn(TcpStream::connect(address));
        let (mut served, _) = listener.accept().await.unwrap();
        early.write_all(b"request").await.unwrap();
        let mut request = [0; 7];
        served.read_exact(&mut request).await.unwrap();
        served.write_all(b"answer").await.unwrap();
        let mut answer = [0; 6];
        early.read_exact(&mut answer).await.unwrap();
        assert_eq!((&request, &answer), (b"request", b"answer"));
        assert!(!late.is_finished(), "whoever comes late is neither let in nor refused yet");
        drop(listener);
        assert!(late.await.unwrap().is_err());
    }
}
