//! What needs no socket: cutting runs into pieces, and the network in memory.

use super::*;
use godwit_base::{Ecn, SendMeta};
use memory::Hub;

fn meta(socket: u32, remote: SocketAddr) -> SendMeta {
    SendMeta { socket: SocketId(socket), local: None, remote, ecn: Ecn::Ect0, dscp: 0, release: None }
}

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn batch(runs: &[(u32, usize, usize)]) -> SendBatch {
    let mut batch = SendBatch::new(1 << 17);
    for (socket, len, segment) in runs {
        batch.reserve(*segment).unwrap()[..*len].fill(7);
        batch.commit(*len, *segment, meta(*socket, addr(2)));
    }
    batch
}

#[test]
fn runs_are_cut_where_the_limit_says() {
    let batch = batch(&[(0, 1050, 100), (0, 100, 100), (1, 10, 10)]);
    let cut = |progress, most| -> Vec<_> {
        pieces(&batch, progress, SocketId(0), move |_| most)
            .map(|piece| (piece.payload.len(), piece.datagrams(), piece.ends_run))
            .collect()
    };
    let start = Progress::default();
    assert_eq!(cut(start, 64), [(1050, 11, true), (100, 1, true)]);
    assert_eq!(cut(start, 4), [(400, 4, false), (400, 4, false), (250, 3, true), (100, 1, true)]);
    let middle = Progress { runs: 0, bytes: 900, split: true };
    assert_eq!(cut(middle, 64), [(100, 1, false), (50, 1, true), (100, 1, true)]);
    assert_eq!(cut(Progress { runs: 2, ..start }, 64), [], "the rest is another socket's");
}

#[test]
fn progress_names_the_next_socket() {
    let batch = batch(&[(0, 200, 100), (1, 10, 10)]);
    let mut progress = Progress::default();
    assert_eq!(progress.next_socket(&batch), Some(SocketId(0)));
    for expected in [Some(SocketId(0)), Some(SocketId(1))] {
        let piece = pieces(&batch, progress, SocketId(0), |_| 1).next().unwrap();
        progress.advance(&piece);
        assert_eq!(progress.next_socket(&batch), expected);
    }
    progress.finish_run();
    assert_eq!(progress.next_socket(&batch), None);
}

#[test]
fn memory_sockets_reach_one_another() {
    let (mut a, mut b) = Hub::pair(2, addr(1), addr(2));
    let send = batch(&[(0, 250, 100), (0, 30, 30), (0, 40, 40)]);
    let mut progress = Progress::default();
    assert_eq!(a.send(&send, &mut progress).unwrap(), Sent::Blocked, "the receiver holds two runs");
    let mut received = RecvBatch::new(1, 1000);
    assert_eq!(b.receive(&mut received).unwrap(), Received { runs: 1, more: true });
    let (meta, bytes) = received.runs().next().unwrap();
    assert_eq!((meta.remote, meta.stride, bytes.len(), meta.ecn), (addr(1), 100, 250, Ecn::Ect0));
    assert_eq!(a.send(&send, &mut progress).unwrap(), Sent::Done);
    let mut received = RecvBatch::new(8, 1000);
    assert_eq!(b.receive(&mut received).unwrap(), Received { runs: 2, more: false });
    drop(b);
    assert_eq!(a.send(&send, &mut Progress::default()).unwrap(), Sent::Done, "lost, as on any network");
}

/// The kernel refuses to segment for sockets that send no checksums, and sends single datagrams for them.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_cannot_be_segmented_is_sent_split() {
    for backend in [Backend::Native, Backend::Portable] {
        let config = SocketConfig { backend, ..SocketConfig::default() };
        let mut server = bind(SocketId(0), addr(0), &config).unwrap();
        let mut client = bind(SocketId(0), addr(0), &config).unwrap();
        if client.capabilities().gso_segments == 1 {
            continue;
        }
        linux::sys::set_option(client.socket().unwrap(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let mut send = SendBatch::new(1 << 16);
        for _ in 0..2 {
            send.reserve(1200).unwrap()[..5000].fill(7);
            send.commit(5000, 1200, SendMeta { ecn: Ecn::Ect1, ..meta(0, server.local_addr()) });
        }
        assert_eq!(client.send(&send, &mut Progress::default()).unwrap(), Sent::Done);
        let mut received = RecvBatch::new(16, 1 << 16);
        let sizes = |received: &mut RecvBatch| -> Vec<usize> {
            received
                .runs()
                .flat_map(|(meta, bytes)| bytes.chunks(meta.stride).map(<[u8]>::len).collect::<Vec<_>>())
                .collect()
        };
        server.receive(&mut received).unwrap();
        assert_eq!(sizes(&mut received), [1200, 1200, 1200, 1200, 200, 1200, 1200, 1200, 1200, 200]);
        assert_eq!(client.counters().gso_refusals, 1, "the second run is not even tried");
        assert_eq!(client.next_gso_refusal(), Some(server.local_addr()));
        assert_eq!(client.next_gso_refusal(), None);
        assert_eq!(client.counters().refused, 0);
    }
}
