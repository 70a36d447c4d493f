//! How exact and how fast an emulated link is, measured from outside: run on both sides of `godwit emulate`.
//!
//! - `exactness udp-server`, `exactness udp SECONDS PER_SECOND ONE_WAY_MS`: the one-way delay of UDP datagrams less what it
//!   should be, by a clock that both namespaces share;
//! - `exactness tcp-server`, `exactness tcp SECONDS`: bytes per second over one TCP connection.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use godwit_os::clock;

const UDP: &str = "10.77.0.1:4000";
const TCP: &str = "10.77.0.1:4001";

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<f64>().map_err(io::Error::other);
    if words.first().is_some_and(|first| first.starts_with("udp")) {
        // What is measured is the link, not how long an ordinary program waits for a processor.
        let _ = godwit_os::urgency::run_before_others(1);
    }
    match words.as_slice() {
        ["udp-server"] => udp_server(),
        ["udp", seconds, rate, delay] => udp(number(seconds)?, number(rate)?, number(delay)?),
        ["tcp-server"] => tcp_server(),
        ["tcp", seconds] => tcp(number(seconds)?),
        _ => Err(io::Error::other("see the head of this file")),
    }
}

fn now() -> u64 {
    clock::since_boot().as_nanos() as u64
}

/// Tells each datagram's way up, in nanoseconds.
fn udp_server() -> io::Result<()> {
    let socket = UdpSocket::bind(UDP)?;
    let mut times = Vec::new();
    let mut datagram = [0; 1472];
    loop {
        let (len, peer) = socket.recv_from(&mut datagram)?;
        let came = now();
        let sent = datagram.first_chunk().map(|sent| u64::from_le_bytes(*sent)).unwrap_or_default();
        if sent > 0 {
            times.push(came.saturating_sub(sent));
            continue;
        }
        let should = f64::from_bits(u64::from_le_bytes(
            datagram.get(8..16).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default(),
        ));
        let mut late: Vec<f64> = times.drain(..).map(|nanos| nanos as f64 / 1e6 - should).collect();
        late.sort_by(f64::total_cmp);
        let at = |share: f64| late.get((late.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
        println!(
            "{} datagrams of {len} bytes at {should} ms: error P1 {:.3} P50 {:.3} P95 {:.3} P99 {:.3} P99.9 {:.3} ms",
            late.len(),
            at(0.01),
            at(0.5),
            at(0.95),
            at(0.99),
            at(0.999)
        );
        socket.send_to(b"done", peer)?;
    }
}

fn udp(seconds: f64, rate: f64, one_way: f64) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(UDP)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut datagram = [0; 1000];
    for _ in 0..(seconds * rate) as u64 {
        datagram[..8].copy_from_slice(&now().to_le_bytes());
        socket.send(&datagram)?;
        std::thread::sleep(Duration::from_secs_f64(1.0 / rate));
    }
    std::thread::sleep(Duration::from_secs_f64(one_way / 1e3 + 0.2));
    datagram[..8].fill(0);
    datagram[8..16].copy_from_slice(&one_way.to_bits().to_le_bytes());
    socket.send(&datagram)?;
    socket.recv(&mut datagram).map(drop)
}

fn tcp_server() -> io::Result<()> {
    let listener = TcpListener::bind(TCP)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let (mut stream, _) = listener.accept()?;
        let (began, mut bytes) = (now(), 0);
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
        let seconds = now().saturating_sub(began) as f64 / 1e9;
        println!("{bytes} bytes in {seconds:.3} s: {:.1} Mbit/s of data", bytes as f64 * 8e-6 / seconds);
    }
}

fn tcp(seconds: f64) -> io::Result<()> {
    let mut stream = TcpStream::connect(TCP)?;
    let buffer = vec![7; 1 << 18];
    let until = now() + (seconds * 1e9) as u64;
    while now() < until {
        stream.write_all(&buffer)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read(&mut [0; 1]).map(drop)
}
