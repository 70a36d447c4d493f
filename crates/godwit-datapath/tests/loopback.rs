//! Real sockets on the loopback device: both backends, both families, dual stack.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod alone;

use alone::is_alone;
use godwit_base::{
    Ecn, RecvBatch, RecvMeta, Rng, SeededRng, SendBatch, SendMeta, SocketId, Time, steering as rule,
};
use godwit_datapath::{
    Backend, Datapath, DepartureTimes, Progress, Sent, SocketConfig, TooLarge, adopt, bind, bind_group,
    steering,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

const ID: SocketId = SocketId(3);

fn config(backend: Backend) -> SocketConfig {
    let mut config = SocketConfig::default();
    config.backend = backend;
    config
}

/// Settings with one thing changed.
fn with(mut config: SocketConfig, change: impl FnOnce(&mut SocketConfig)) -> SocketConfig {
    change(&mut config);
    config
}

fn socket(addr: &str, config: &SocketConfig) -> Box<dyn Datapath> {
    bind(ID, addr.parse().unwrap(), config).unwrap()
}

fn meta(remote: SocketAddr, ecn: Ecn) -> SendMeta {
    SendMeta { socket: ID, local: None, remote, ecn, dscp: 0, release: None }
}

/// Commits `len` bytes in datagrams of `segment`, each filled with its number.
fn commit(batch: &mut SendBatch, len: usize, segment: usize, meta: SendMeta) {
    let room = batch.reserve(segment).unwrap();
    for (number, datagram) in room[..len].chunks_mut(segment).enumerate() {
        datagram.fill(number as u8);
    }
    batch.commit(len, segment, meta);
}

fn send_all(socket: &mut dyn Datapath, batch: &SendBatch) {
    let mut progress = Progress::default();
    assert_eq!(socket.send(batch, &mut progress).unwrap(), Sent::Done);
    assert_eq!(progress.next_socket(batch), None);
}

/// Every datagram there is, with the metadata of its run. Loopback delivers inside the send.
fn receive_all(socket: &mut dyn Datapath) -> Vec<(RecvMeta, Vec<u8>)> {
    let mut batch = RecvBatch::new(8, 1 << 16);
    let mut all = Vec::new();
    loop {
        batch.clear();
        let received = socket.receive(&mut batch).unwrap();
        assert_eq!(received.runs, batch.len());
        for (meta, bytes) in batch.runs() {
            all.extend(bytes.chunks(meta.stride).map(|datagram| (meta, datagram.to_vec())));
        }
        if !received.more {
            return all;
        }
    }
}

/// Nothing else may wait because receiving has waited once, which is for an hour here.
#[test]
fn receiving_waits_only_where_it_is_asked_to() {
    let config = config(Backend::Native);
    let (mut client, mut server) = (socket("127.0.0.1:0", &config), socket("127.0.0.1:0", &config));
    let mut batch = RecvBatch::new(8, 1 << 16);
    let nothing = server.receive_within(&mut batch, Duration::from_millis(1)).unwrap().unwrap();
    assert_eq!((nothing.runs, nothing.more), (0, false));
    let to = server.local_addr();
    let sender = std::thread::spawn(move || {
        let mut run = SendBatch::new(1 << 16);
        commit(&mut run, 2500, 1000, meta(to, Ecn::Ect0));
        send_all(&mut *client, &run);
        client
    });
    let hour = Duration::from_secs(3600);
    let received = server.receive_within(&mut batch, hour).unwrap().unwrap();
    assert_eq!((received.runs > 0, batch.runs().next().map(|(meta, _)| meta.ecn)), (true, Some(Ecn::Ect0)));
    let client = sender.join().unwrap();
    receive_all(&mut *server);
    assert_eq!(receive_all(&mut *server), []);
    let mut run = SendBatch::new(1 << 16);
    commit(&mut run, 2500, 1000, meta(client.local_addr(), Ecn::NotEct));
    send_all(&mut *server, &run);
    server.receive_errors();
}

/// The kernel drops them while somebody receives, and would begin the wait anew.
#[test]
fn wrong_checksums_do_not_prolong_a_wait() {
    use socket2::{Domain, Protocol, Socket, Type};
    // Needs a privilege.
    let Ok(raw) = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)) else { return };
    let mut server = socket("127.0.0.1:0", &config(Backend::Native));
    let to = server.local_addr();
    let [high, low] = to.port().to_be_bytes();
    // Longer than what is verified at once in any case; the checksum is the fourth field.
    let mut wrong = vec![7; 1200];
    wrong[..8].copy_from_slice(&[0, 9, high, low, 0x04, 0xb0, 0x12, 0x34]);
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        for _ in 0..10_000 {
            raw.send_to(&wrong, &to.into()).unwrap();
            if is_over.recv_timeout(Duration::from_millis(1)) != Err(RecvTimeoutError::Timeout) {
                return true;
            }
        }
        false
    });
    let mut batch = RecvBatch::new(8, 1 << 16);
    let nothing = server.receive_within(&mut batch, Duration::from_millis(10)).unwrap().unwrap();
    assert_eq!((nothing.runs, nothing.more), (0, false));
    drop(over);
    assert!(sender.join().unwrap(), "it ended with the last of them");
}

#[test]
fn who_cannot_wait_says_so_at_once() {
    let mut socket = socket("127.0.0.1:0", &config(Backend::Portable));
    let mut batch = RecvBatch::new(8, 1 << 16);
    assert_eq!(socket.receive_within(&mut batch, Duration::from_secs(3600)).unwrap(), None);
}

fn each_backend(test: impl Fn(Backend)) {
    for backend in [Backend::Native, Backend::Portable] {
        test(backend);
    }
}

#[test]
fn a_whole_run_arrives_with_ecn_and_the_address_asked() {
    for (send_backend, recv_backend) in [
        (Backend::Native, Backend::Portable),
        (Backend::Portable, Backend::Native),
        (Backend::Native, Backend::Native),
    ] {
        for (bound, asked) in [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "::1")] {
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let mut server = socket(bound, &config(recv_backend));
                let mut client =
                    socket(if asked == "::1" { "[::1]:0" } else { "127.0.0.1:0" }, &config(send_backend));
                let asked: IpAddr = asked.parse().unwrap();
                let remote = SocketAddr::new(asked, server.local_addr().port());
                let mut batch = SendBatch::new(1 << 17);
                commit(&mut batch, 44 * 1400 + 77, 1400, meta(remote, ecn));
                send_all(&mut *client, &batch);
                let got = receive_all(&mut *server);
                let sizes: Vec<_> = got.iter().map(|(_, bytes)| bytes.len()).collect();
                assert_eq!(sizes, [&[1400; 44][..], &[77]].concat());
                for (number, (meta, bytes)) in got.iter().enumerate() {
                    assert!(bytes.iter().all(|byte| *byte == number as u8));
                    assert_eq!(meta.ecn, ecn, "{send_backend:?} to {recv_backend:?} on {bound}, {meta:?}");
                    assert_eq!(meta.local, Some(asked));
                    assert_eq!(meta.remote, client.local_addr());
                    assert_eq!(meta.socket, ID);
                }
                if client.capabilities().gso_segments >= 45 {
                    assert_eq!(client.counters().send_calls, 1, "segmentation offload is used");
                }
                if client.capabilities().gso_segments >= 45 && server.capabilities().gro {
                    assert_eq!(server.counters().runs_received, 1, "merging is used");
                }
            }
        }
    }
}

#[test]
fn ipv4_on_a_dual_stack_socket_is_ipv4() {
    each_backend(|backend| {
        let mut server = socket("[::]:0", &config(backend));
        let mut client = socket("127.0.0.1:0", &config(backend));
        let asked: IpAddr = "127.0.0.3".parse().unwrap();
        let mut batch = SendBatch::new(1 << 16);
        commit(&mut batch, 3000, 1200, meta(SocketAddr::new(asked, server.local_addr().port()), Ecn::Ect0));
        send_all(&mut *client, &batch);
        let got = receive_all(&mut *server);
        assert_eq!(got.len(), 3);
        assert_eq!((got[0].0.remote, got[0].0.local), (client.local_addr(), Some(asked)));
        assert_eq!(got[0].0.ecn, Ecn::Ect0);

        // And back, from the address that was asked rather than the one the kernel would choose.
        batch.clear();
        let back = SendMeta { local: got[0].0.local, ..meta(got[0].0.remote, Ecn::Ce) };
        commit(&mut batch, 2500, 1200, back);
        send_all(&mut *server, &batch);
        let got = receive_all(&mut *client);
        assert_eq!(got.len(), 3);
        assert_eq!(got[0].0.remote, SocketAddr::new(asked, server.local_addr().port()));
        assert_eq!(got[0].0.ecn, Ecn::Ce);
    });
}

#[test]
fn replies_leave_from_the_address_that_was_asked() {
    each_backend(|backend| {
        let mut server = socket("0.0.0.0:0", &config(backend));
        let mut client = socket("127.0.0.1:0", &config(backend));
        let local: IpAddr = "127.0.0.9".parse().unwrap();
        let mut batch = SendBatch::new(1 << 16);
        commit(
            &mut batch,
            100,
            100,
            SendMeta { local: Some(local), ..meta(client.local_addr(), Ecn::NotEct) },
        );
        send_all(&mut *server, &batch);
        assert_eq!(receive_all(&mut *client)[0].0.remote.ip(), local);
    });
}

#[test]
fn many_small_runs_to_many_destinations() {
    each_backend(|backend| {
        let mut servers: Vec<_> = (0..40).map(|_| socket("127.0.0.1:0", &config(backend))).collect();
        let mut client = socket("127.0.0.1:0", &config(backend));
        let mut batch = SendBatch::new(1 << 17);
        for (number, server) in servers.iter().enumerate() {
            commit(&mut batch, 2 * (100 + number), 100 + number, meta(server.local_addr(), Ecn::NotEct));
        }
        send_all(&mut *client, &batch);
        for (number, server) in servers.iter_mut().enumerate() {
            let sizes: Vec<_> = receive_all(&mut **server).iter().map(|(_, bytes)| bytes.len()).collect();
            assert_eq!(sizes, [100 + number; 2]);
        }
        assert_eq!(client.counters().datagrams_sent, 80);
        if client.capabilities().name == "linux" {
            assert_eq!(client.counters().send_calls, 3, "sixteen runs a call");
        }
    });
}

#[test]
fn without_offload_the_same_arrives() {
    each_backend(|backend| {
        let plain = with(config(backend), |config| {
            config.gso = false;
            config.gro = false;
        });
        let (mut server, mut client) = (socket("127.0.0.1:0", &plain), socket("127.0.0.1:0", &plain));
        assert_eq!(client.capabilities().gso_segments, 1);
        assert!(!server.capabilities().gro);
        let mut batch = SendBatch::new(1 << 17);
        commit(&mut batch, 20 * 1200 + 1, 1200, meta(server.local_addr(), Ecn::Ect1));
        send_all(&mut *client, &batch);
        let got = receive_all(&mut *server);
        assert_eq!(got.len(), 21);
        assert!(got.iter().enumerate().all(|(number, (meta, bytes))| {
            meta.len == bytes.len() && meta.ecn == Ecn::Ect1 && bytes[0] == number as u8
        }));
        assert_eq!(server.counters().runs_received, 21);
    });
}

#[test]
fn a_refused_run_costs_only_itself() {
    each_backend(|backend| {
        let mut server = socket("127.0.0.1:0", &config(backend));
        let mut client = socket("127.0.0.1:0", &config(backend));
        let mut batch = SendBatch::new(1 << 18);
        let good = meta(server.local_addr(), Ecn::NotEct);
        commit(&mut batch, 300, 100, good);
        // Larger than the loopback device's MTU of 65,536 less the headers.
        let room = batch.reserve(65_507).unwrap().len();
        batch.commit(room, room, good);
        // Another family, and a port that nobody has.
        commit(&mut batch, 200, 100, meta("[2001:db8::1]:9".parse().unwrap(), Ecn::NotEct));
        commit(&mut batch, 200, 100, meta("127.0.0.1:9".parse().unwrap(), Ecn::NotEct));
        // An address that is not ours: refused whole and split alike, which says nothing about offload.
        commit(&mut batch, 200, 100, SendMeta { local: "192.0.2.77".parse().ok(), ..good });
        commit(&mut batch, 300, 100, good);
        send_all(&mut *client, &batch);
        let small = receive_all(&mut *server).iter().filter(|(_, bytes)| bytes.len() == 100).count();
        assert_eq!(small, 6);
        assert!(client.counters().refused >= 2);
        let refused: Vec<_> = std::iter::from_fn(|| client.next_refused()).collect();
        assert!(refused.iter().all(|refused| !refused.congested), "{refused:?}");
        let refused: Vec<_> = refused.iter().map(|refused| (refused.run, refused.datagrams)).collect();
        assert_eq!(refused, [(2, 2), (4, 2)], "{backend:?}");
        assert_eq!(client.counters().gso_refusals, 0);
        assert_eq!(client.next_gso_refusal(), None);
        let fresh_receive = client.receive(&mut RecvBatch::new(1, 2000)).unwrap();
        assert_eq!(fresh_receive.runs, 0);
    });
}

#[test]
fn what_does_not_fit_a_slot_is_dropped_and_the_rest_moves_down() {
    let mut server = socket("127.0.0.1:0", &with(config(Backend::Native), |config| config.gro = false));
    let mut client = socket("127.0.0.1:0", &config(Backend::Native));
    let mut batch = SendBatch::new(1 << 16);
    for size in [50, 500, 60, 600, 70] {
        commit(&mut batch, size, size, meta(server.local_addr(), Ecn::NotEct));
    }
    send_all(&mut *client, &batch);
    let mut received = RecvBatch::new(8, 100);
    server.receive(&mut received).unwrap();
    let sizes: Vec<_> = received.runs().map(|(meta, bytes)| (meta.stride, bytes.len())).collect();
    assert_eq!(sizes, [(50, 50), (60, 60), (70, 70)]);
    assert_eq!(server.counters().truncated, 2);
}

#[test]
fn more_is_told_only_when_the_batch_came_full() {
    each_backend(|backend| {
        let mut server = socket("127.0.0.1:0", &with(config(backend), |config| config.gro = false));
        let mut client = socket("127.0.0.1:0", &config(backend));
        let mut batch = SendBatch::new(1 << 16);
        for _ in 0..3 {
            commit(&mut batch, 100, 100, meta(server.local_addr(), Ecn::NotEct));
        }
        send_all(&mut *client, &batch);
        let mut received = RecvBatch::new(2, 2000);
        let first = server.receive(&mut received).unwrap();
        assert_eq!((first.runs, first.more), (2, true));
        assert!(server.receive(&mut received).unwrap().more, "no free slot: nothing can be said");
        received.clear();
        let second = server.receive(&mut received).unwrap();
        assert_eq!((second.runs, second.more), (1, false));
    });
}

#[test]
fn drops_in_the_kernel_are_counted() {
    let small = with(config(Backend::Native), |config| {
        config.recv_buffer = 8192;
        config.gro = false;
    });
    let mut server = socket("127.0.0.1:0", &small);
    let mut client = socket("127.0.0.1:0", &with(config(Backend::Native), |config| config.gso = false));
    let mut batch = SendBatch::new(1 << 18);
    for _ in 0..2 {
        commit(&mut batch, 50 * 1200, 1200, meta(server.local_addr(), Ecn::NotEct));
        send_all(&mut *client, &batch);
        assert!(receive_all(&mut *server).len() < 50);
        batch.clear();
    }
    let drops = server.counters().kernel_drops;
    assert!(drops > 0, "told with the datagrams of the second round");
    assert!(server.capabilities().recv_buffer < 1 << 16);
}

#[test]
fn an_address_in_use_is_told_as_such() {
    each_backend(|backend| {
        let first = socket("127.0.0.1:0", &config(backend));
        let error = bind(ID, first.local_addr(), &config(backend)).err().unwrap();
        assert_eq!(error.io_error().kind(), std::io::ErrorKind::AddrInUse);
        assert_eq!(error.addr(), first.local_addr());
        assert!(error.to_string().contains("cannot bind"), "{error}");
    });
}

#[test]
fn a_group_has_its_port_to_itself() {
    each_backend(|backend| {
        let group = bind_group(ID, "127.0.0.1:0".parse().unwrap(), 2, &config(backend)).unwrap();
        let port = group[0].local_addr();
        for count in [1, 2] {
            let error = bind_group(ID, port, count, &config(backend)).err().unwrap();
            assert_eq!(error.io_error().kind(), std::io::ErrorKind::AddrInUse, "{count}");
        }
        let shared = with(config(backend), |config| config.reuse_port = true);
        assert!(bind_group(ID, port, 2, &shared).is_ok(), "it can be had by who says so");
    });
}

#[test]
fn the_kernel_steers_by_connection_id() {
    let (key, shards) = ([0x1234_5678, 0x9abc_def0, 0x0fed_cba9, 0x8765_4321], 3);
    let any = "127.0.0.1:0".parse().unwrap();
    let mut sockets = bind_group(ID, any, shards, &config(Backend::Native)).unwrap();
    let port = sockets[0].local_addr();
    assert!(sockets.iter().all(|socket| socket.local_addr() == port));
    steering::attach(sockets[0].socket().unwrap(), key, shards).unwrap();

    let mut client = socket("127.0.0.1:0", &config(Backend::Native));
    let mut rng = SeededRng::new(11);
    let mut hits = vec![0; shards];
    for round in 0..300usize {
        let mut datagram = [0; 60];
        rng.fill(&mut datagram);
        // Ids made by the rule, ids chosen by a client in long headers, and things too short to tell.
        let shard = round % shards;
        let len = match round % 4 {
            0 | 1 => {
                datagram[0] &= 0x7f;
                let random = *datagram[1..].first_chunk().unwrap();
                datagram[1 + rule::SHARD_AT] = shard as u8 ^ rule::mix(key, random);
                60
            }
            2 => {
                datagram[0] |= 0x80;
                datagram[5] %= 21;
                60
            }
            _ => 1 + round % 15,
        };
        let datagram = &datagram[..len];
        let expected = rule::shard_of_datagram(key, datagram, shards);
        if round % 4 < 2 {
            assert_eq!(expected, shard);
        }
        let mut batch = SendBatch::new(1 << 16);
        batch.reserve(len).unwrap()[..len].copy_from_slice(datagram);
        batch.commit(len, len, meta(port, Ecn::NotEct));
        send_all(&mut *client, &batch);
        for (number, socket) in sockets.iter_mut().enumerate() {
            let got = receive_all(&mut **socket);
            assert_eq!(
                got.len(),
                usize::from(number == expected),
                "round {round}: socket {number} of {expected}"
            );
        }
        hits[expected] += 1;
    }
    assert!(hits.iter().all(|count| *count > 50), "{hits:?}");
}

#[test]
fn steering_refuses_what_it_cannot_do() {
    let alone = socket("127.0.0.1:0", &config(Backend::Native));
    assert!(steering::attach(alone.socket().unwrap(), [0; 4], 0).is_err());
    assert!(steering::attach(alone.socket().unwrap(), [0; 4], 257).is_err());
}

/// Two interfaces with a cable between them. What is between two addresses of the same host stays within it, unless a
/// socket insists on an interface.
const CABLE: &str = "ip link add name left type veth peer name right \
    && for name in left right all; do \
        echo 1 > /proc/sys/net/ipv4/conf/$name/accept_local; echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter; done \
    && ip addr add 10.9.0.1/24 dev left && ip addr add 10.9.0.2/24 dev right \
    && ip link set left up && ip link set right up";

/// Waits until something is there: it may have to find its way first.
fn receive_some(socket: &mut dyn Datapath) -> Vec<(RecvMeta, Vec<u8>)> {
    loop {
        let got = receive_all(socket);
        if !got.is_empty() {
            return got;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_socket_keeps_to_its_interface() {
    if !is_alone("a_socket_keeps_to_its_interface", CABLE) {
        return;
    }
    each_backend(|backend| {
        let left = with(config(backend), |config| config.interface = Some("left".to_owned()));
        let (mut bound, mut free) = (socket("0.0.0.0:0", &left), socket("0.0.0.0:0", &config(backend)));
        let send = |from: &mut dyn Datapath, ip: &str, port: u16| {
            let mut batch = SendBatch::new(1 << 16);
            let remote = SocketAddr::new(ip.parse().unwrap(), port);
            commit(&mut batch, 3000, 1000, meta(remote, Ecn::NotEct));
            send_all(from, &batch);
        };
        let (bound_port, free_port) = (bound.local_addr().port(), free.local_addr().port());
        // From one end of the cable to the other, and not within the host, where the address would be the same.
        send(&mut *bound, "10.9.0.2", free_port);
        let (meta, _) = receive_some(&mut *free)[0];
        assert_eq!(
            (meta.remote.ip().to_string(), meta.local),
            ("10.9.0.1".to_owned(), "10.9.0.2".parse().ok())
        );
        send(&mut *free, "10.9.0.2", free_port);
        assert_eq!(receive_some(&mut *free)[0].0.remote.ip().to_string(), "10.9.0.2");
        // What is for the other interface is not for this socket; what is for its own is.
        send(&mut *free, "10.9.0.2", bound_port);
        send(&mut *free, "10.9.0.1", bound_port);
        let got = receive_some(&mut *bound);
        assert_eq!(got.len(), 3);
        assert!(got.iter().all(|(meta, _)| meta.local == "10.9.0.1".parse().ok()), "{backend:?}");
    });
}

#[test]
fn what_a_narrow_route_refuses_is_told_with_what_it_carries() {
    const MTU: usize = 1400;
    let narrow = format!("ip link set lo mtu {MTU}");
    if !is_alone("what_a_narrow_route_refuses_is_told_with_what_it_carries", &narrow) {
        return;
    }
    each_backend(|backend| {
        for (bound, headers) in [("127.0.0.1:0", 28), ("[::1]:0", 48)] {
            let (mut from, mut to) = (socket(bound, &config(backend)), socket(bound, &config(backend)));
            let (remote, max) = (to.local_addr(), MTU - headers);
            let mut batch = SendBatch::new(1 << 17);
            // Alone and in runs: only what fits arrives, and nothing is sent in fragments.
            for (datagrams, size) in [(1, max), (1, max + 1), (10, max), (10, max + 1), (5, 1472)] {
                commit(&mut batch, datagrams * size, size, meta(remote, Ecn::NotEct));
            }
            send_all(&mut *from, &batch);
            let got = receive_all(&mut *to);
            assert!(got.iter().all(|(_, bytes)| bytes.len() == max), "{backend:?} {bound}");
            assert_eq!(got.len(), 11);
            let told: Vec<_> = std::iter::from_fn(|| from.next_too_large()).collect();
            let expected = |size| {
                let mut expected = TooLarge::new(remote, size);
                expected.max = Some(max);
                expected
            };
            assert_eq!(told, [expected(max + 1), expected(1472)], "each once, {backend:?} {bound}");
            assert!(from.counters().too_large >= 3);
        }
    });
}

/// A socket that another process has made comes with its options.
#[test]
fn errors_that_are_queued_already_are_read() {
    for addr in ["127.0.0.1:0", "[::1]:0"] {
        let reporting = with(config(Backend::Native), |config| config.report_unreachable = true);
        let made = socket(addr, &reporting);
        let inherited = made.socket().unwrap().try_clone().unwrap();
        let mut adopted = adopt(ID, inherited, &config(Backend::Native)).unwrap();
        assert!(adopted.reports_errors());
        let nobody = socket(addr, &config(Backend::Native)).local_addr();
        let mut batch = SendBatch::new(1 << 16);
        commit(&mut batch, 100, 100, meta(nobody, Ecn::NotEct));
        for _ in 0..3 {
            send_all(&mut *adopted, &batch);
        }
        assert_eq!((adopted.counters().datagrams_sent, adopted.counters().refused), (3, 0));
        assert!(!socket(addr, &config(Backend::Native)).reports_errors());
    }
}

/// The call that it ends has sent something, and says nothing of it; but whoever waits for the socket is woken by it.
#[test]
fn an_error_in_the_middle_of_a_batch_is_read() {
    for addr in ["127.0.0.1:0", "[::1]:0"] {
        let mut server = socket(addr, &config(Backend::Native));
        let mut client =
            socket(addr, &with(config(Backend::Native), |config| config.report_unreachable = true));
        let nobody = socket(addr, &config(Backend::Native)).local_addr();
        let mut batch = SendBatch::new(1 << 16);
        for to in [nobody, server.local_addr()] {
            commit(&mut batch, 100, 100, meta(to, Ecn::NotEct));
        }
        send_all(&mut *client, &batch);
        assert_eq!(receive_all(&mut *server).len(), 1);
        assert_eq!(receive_all(&mut *client), []);
        assert_eq!(client.next_unreachable().and_then(|told| told.remote), Some(nobody));
    }
}

/// Loopback has no queue that could hold anything back: it is seen that the kernel takes the times and sends.
#[test]
fn datagrams_with_departure_times_are_sent() {
    for addr in ["127.0.0.1:0", "[::1]:0"] {
        let mut server = socket(addr, &config(Backend::Native));
        let timed = with(config(Backend::Native), |config| config.departure_times = DepartureTimes::On);
        let mut client = socket(addr, &timed);
        assert!(client.capabilities().departure_times);
        client.keep_departure_times(0);
        let mut batch = SendBatch::new(1 << 16);
        let meta = meta(server.local_addr(), Ecn::Ect0);
        for (len, release) in
            [(3000, Some(Time::from_nanos(5))), (900, None), (1200, Some(Time::from_nanos(u64::MAX >> 2)))]
        {
            commit(
                &mut batch,
                len,
                1000,
                SendMeta { local: Some(server.local_addr().ip()), release, ..meta },
            );
        }
        send_all(&mut *client, &batch);
        let sizes: Vec<_> = receive_all(&mut *server).iter().map(|(_, datagram)| datagram.len()).collect();
        assert_eq!(sizes, [1000, 1000, 1000, 900, 1000, 200]);
        assert_eq!((client.counters().refused, client.counters().gso_refusals), (0, 0));
    }
}

#[test]
fn departure_times_are_kept_by_request_only_and_never_on_loopback() {
    for backend in [Backend::Native, Backend::Portable] {
        assert!(!socket("127.0.0.1:0", &config(backend)).capabilities().departure_times);
        let on_loopback = with(config(backend), |config| {
            config.departure_times = DepartureTimes::Auto;
            config.interface = Some("lo".to_owned());
        });
        assert!(!socket("127.0.0.1:0", &on_loopback).capabilities().departure_times);
    }
}
