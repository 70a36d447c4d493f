//! Bare datagrams, with segmentation: what a request and its answer cost with nothing around them.
//!
//! A request is one datagram, whose first eight bytes say how many are asked for and the next eight which place it came
//! from; the answer is as many datagrams as that takes, which bring the place back. Nothing is sent again: what is lost
//! is a failure.

use anyhow::{Context, Result, bail};
use peer_perf::socket::{ROOM, Received, Socket};
use peer_perf::{MTU, Measure, Outcome, Requests, Serve, Timings, Work};
use std::time::{Duration, Instant};

/// After which an answer does not come any more.
const LOST: Duration = Duration::from_secs(1);
const HEAD: usize = 16;

pub fn serve(options: &Serve) -> Result<()> {
    let socket = Socket::bind(options.listen)?;
    println!("listening {}", socket.local());
    let (mut input, mut output) = (vec![0; ROOM], vec![0; ROOM]);
    loop {
        let Some(Received { len, segment, from }) = socket.receive_waiting(&mut input)? else { continue };
        for request in input[..len].chunks(segment.max(1)) {
            let head = request.get(..HEAD).context("a request that is too short")?;
            let wanted = usize::try_from(u64::from_be_bytes(head[..8].try_into()?))?;
            let answer = output.get_mut(..wanted).context("more than a call can send is asked for")?;
            for datagram in answer.chunks_mut(MTU.into()) {
                datagram.get_mut(..8).context("too little is asked for")?.copy_from_slice(&head[8..]);
            }
            socket.send(answer, MTU.into(), from)?;
        }
    }
}

/// A place that requests are made from, one after the other.
struct Place {
    start: Instant,
    received: u64,
}

pub fn measure(options: &Measure) -> Result<Outcome> {
    let Work::Requests(wanted) = options.work else { bail!("bare datagrams only answer requests") };
    let socket = Socket::client(options.remote)?;
    socket.set_patience(LOST)?;
    let mut message = wanted.message();
    let mut ask = |place: u64| -> Result<()> {
        message[8..HEAD].copy_from_slice(&place.to_be_bytes());
        socket.send(&message, message.len(), options.remote)
    };
    let mut timings = Timings::begin(wanted.time);
    let mut places = Vec::new();
    for place in 0..wanted.streams {
        places.push(Place { start: Instant::now(), received: 0 });
        ask(place as u64)?;
    }
    let (mut input, mut waiting) = (vec![0; ROOM], places.len());
    while waiting > 0 {
        let received = socket.receive_waiting(&mut input)?;
        let Received { len, segment, .. } = received.context("a datagram was lost")?;
        for datagram in input[..len].chunks(segment.max(1)) {
            let number = u64::from_be_bytes(datagram.get(..8).context("too short")?.try_into()?);
            let place = places.get_mut(usize::try_from(number)?).context("no such place")?;
            if !took_in(place, datagram.len() as u64, &wanted)? {
                continue;
            }
            timings.record(place.start);
            if timings.goes_on() {
                *place = Place { start: Instant::now(), received: 0 };
                ask(number)?;
            } else {
                waiting -= 1;
            }
        }
    }
    Ok(Outcome::requests(timings))
}

/// Whether that was the rest of an answer.
fn took_in(place: &mut Place, len: u64, wanted: &Requests) -> Result<bool> {
    place.received += len;
    if place.received > wanted.response {
        bail!("{} bytes came, {} were asked for", place.received, wanted.response);
    }
    Ok(place.received == wanted.response)
}
