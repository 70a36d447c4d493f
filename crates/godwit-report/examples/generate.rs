//! Makes up an access log: `generate LINES [SEED] [EXACT]` writes the log to the standard output and, if a file is
//! named, the exact percentiles of its last-mile times there.
//!
//! The times are like those of a site on the internet: lognormal round trips, humps where packets were sent again,
//! a Pareto tail. First visits are HTTP/2; one user in eight is on a network without UDP; half of the users are
//! drawn into a roll-out.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use godwit_base::{Rng, SeededRng};
use godwit_report::analysis::{LABELS, QUANTILES};
use godwit_report::dimension::Size;

const USERS: u64 = 100_000;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (lines, seed) = (number(100_000), number(1));
    let exact = arguments.next();
    let mut site = Site::new(seed);
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut line = Vec::with_capacity(1024);
    for number in 0..lines {
        line.clear();
        site.write_line(number, lines, &mut line);
        out.write_all(&line)?;
    }
    out.flush()?;
    match exact {
        Some(path) => site.write_exact(BufWriter::new(File::create(path)?)),
        None => Ok(()),
    }
}

pub(crate) struct Site {
    rng: SeededRng,
    /// Last-mile times in microseconds: by protocol, first or reused, and size.
    times: Vec<Vec<u32>>,
}

/// Protocols times places on the connection times sizes.
const CLASSES: usize = 2 * 2 * Size::COUNT;

struct Request {
    user: u64,
    http3: bool,
    first: bool,
    size: u64,
    micros: u64,
    upstream: u64,
}

impl Site {
    pub(crate) fn new(seed: u64) -> Site {
        Site { rng: SeededRng::new(seed), times: vec![Vec::new(); CLASSES] }
    }

    fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }

    /// A normal number, from the sum of four uniform ones.
    fn normal(&mut self) -> f64 {
        let bits = self.rng.next_u64();
        let sum: u64 = (0..4).map(|place| bits >> (16 * place) & 0xffff).sum();
        (sum as f64 / 65_536.0 - 2.0) * 1.732
    }

    fn request(&mut self) -> Request {
        let user = self.rng.below(USERS);
        let offered = user & 1 == 0;
        let udp = user % 8 != 7;
        let first_visit = self.chance(0.06);
        let http3 = offered && udp && !first_visit;
        let first = first_visit || self.chance(0.1);
        let size = (self.normal() * 2.2 + 8.5).exp() as u64;
        // A user's round trip stays with the user.
        let place = (user.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1_u64 << 24) as f64;
        let round_trip = 20.0 + 180.0 * place * place;
        let rounds = 1.0 + (size as f64 / 14_000.0 + 1.0).log2() * if first { 1.0 } else { 0.3 };
        let mut ms = round_trip * rounds * (0.25 * self.normal()).exp();
        if first {
            ms += round_trip * if http3 { 0.1 } else { 1.0 };
        }
        // A packet was lost and sent again.
        if self.chance(0.035) {
            ms += if http3 { 1.2 * round_trip } else { 200.0 + 1.8 * round_trip };
        }
        if self.chance(0.002) {
            ms += 300.0 / self.uniform().powf(0.7) * if http3 { 0.6 } else { 1.0 };
        }
        let upstream = ((self.normal() * 0.8 + 1.5).exp() * 1000.0) as u64;
        Request { user, http3, first, size, micros: (ms * 1000.0) as u64, upstream }
    }

    pub(crate) fn write_line(&mut self, number: u64, lines: u64, out: &mut Vec<u8>) {
        let request = self.request();
        let failed = self.chance(0.004);
        let Request { user, http3, first, size, micros, upstream } = request;
        if !failed {
            let class = class(http3, first, Size::of(size).index());
            if let Some(times) = self.times.get_mut(class) {
                times.push(u32::try_from(micros).unwrap_or(u32::MAX));
            }
        }
        let second = (u128::from(number) * 86_400 / u128::from(lines.max(1))) as u64;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let v6 = user % 3 == 0;
        let delivered = micros + upstream;
        let last = upstream + micros / 9;
        let _ =
            write!(out, "{{\"time\":\"2026-11-21T{hour:02}:{minute:02}:{second:02}.{:03}Z\",", number % 1000);
        let _ = match v6 {
            true => {
                write!(out, "\"client\":\"2001:db8:{:x}::{:x}\",\"family\":6,", user % 0xffff, number & 0xff)
            }
            false => write!(out, "\"client\":\"192.{}.{}.7\",\"family\":4,", user / 256 % 256, user % 256),
        };
        let _ = write!(
            out,
            "\"host\":\"www.example.com\",\"method\":\"GET\",\"path\":\"/item/{}?q=\\\"a\\\"\",\"protocol\":\"{}\",\"status\":{},",
            number % 7919,
            if http3 { "h3" } else { "h2" },
            if failed { 503 } else { 200 },
        );
        if !http3 {
            let why = if user & 1 == 1 { "not_advertised" } else { "no_attempt" };
            let _ = write!(out, "\"why_not_h3\":\"{why}\",");
        }
        let _ = write!(
            out,
            "\"user\":\"{:016x}\",\"arm\":\"{}\",\"connection\":{},\"request\":{},\"tls\":\"{}\",\"rtt_ms\":{}.{},\
             \"lost\":{},\"retransmitted\":0,\"request_bytes\":0,\"response_bytes\":{size},",
            user.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            if user & 1 == 0 { "on" } else { "off" },
            number / 5,
            if first { 1 } else { 2 + number % 9 },
            if number.is_multiple_of(3) { "resumed" } else { "full" },
            micros / 2000,
            micros % 10,
            number % 3,
        );
        let ms = |micros: u64| (micros / 1000, micros % 1000);
        let ((a, b), (c, d), (e, f)) = (ms(upstream), ms(last), ms(delivered));
        let ((g, h), (i, j)) = (ms(upstream), ms(micros));
        let _ = writeln!(
            out,
            "\"first_byte_ms\":{a}.{b:03},\"last_byte_ms\":{c}.{d:03},\"delivered_ms\":{e}.{f:03},\"upstream\":\"127.0.0.1:8080\",\
             \"upstream_ms\":{g}.{h:03},\"last_mile_ms\":{i}.{j:03},\"outcome\":\"ok\",\
             \"user_agent\":\"Mozilla/5.0 (X11; Linux x86_64) Example/{}.0\"}}",
            100 + user % 50
        );
    }

    /// One line for each group: its name, its number of samples, its percentiles in microseconds.
    pub(crate) fn write_exact(mut self, mut out: impl Write) -> io::Result<()> {
        for (name, http3) in [("HTTP/2", false), ("HTTP/3", true)] {
            for (place, first) in [("first", true), ("reused", false)] {
                let mut all = Vec::new();
                for size in 0..Size::COUNT {
                    all.append(&mut self.times.get(class(http3, first, size)).cloned().unwrap_or_default());
                }
                write_group(&mut out, &format!("{name} {place}"), all)?;
            }
            for size in Size::ALL {
                let mut all = Vec::new();
                for first in [true, false] {
                    if let Some(times) = self.times.get_mut(class(http3, first, size.index())) {
                        all.append(times);
                    }
                }
                write_group(&mut out, &format!("{name} {}", size.label()), all)?;
            }
        }
        out.flush()
    }
}

fn class(http3: bool, first: bool, size: usize) -> usize {
    (usize::from(http3) * 2 + usize::from(first)) * Size::COUNT + size
}

fn write_group(out: &mut impl Write, name: &str, mut times: Vec<u32>) -> io::Result<()> {
    times.sort_unstable();
    write!(out, "{name}\t{}", times.len())?;
    for (q, _) in QUANTILES.iter().zip(LABELS) {
        let place = (q * times.len().saturating_sub(1) as f64).floor() as usize;
        write!(out, "\t{}", times.get(place).copied().unwrap_or(0))?;
    }
    writeln!(out)
}
