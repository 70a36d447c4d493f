use std::convert::Infallible;

use godwit_body::Wrapped;
use http_body::{Body, Frame};

use super::*;

const PIECE: usize = 16 << 10;

/// A body that always has another piece.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> FramePoll<Infallible> {
        Poll::Ready(Some(Ok(Frame::data(vec![7; PIECE].into()))))
    }
}

type Response = Wrapped<Endless, HeldResponse>;

fn response(memory: &ResponseMemory) -> Response {
    Wrapped::with(Endless, HeldResponse::new(Some(memory.clone())))
}

fn poll(response: &mut Response, waker: &Waker) -> Option<Bytes> {
    match Pin::new(response).poll_frame(&mut Context::from_waker(waker)) {
        Poll::Ready(frame) => Some(frame.unwrap().unwrap().into_data().unwrap()),
        Poll::Pending => None,
    }
}

/// All pieces that each hands out while nobody takes any, up to 64.
fn pieces(responses: &mut [Response]) -> Vec<Bytes> {
    let each = |response: &mut Response| (0..64).map_while(|_| poll(response, Waker::noop())).collect();
    responses.iter_mut().flat_map::<Vec<Bytes>, _>(each).collect()
}

fn length(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

fn network(address: &str) -> Option<ClientNetwork> {
    ClientNetwork::of(address.parse().unwrap())
}

struct Woken(AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_responses_of_a_connection_hold_so_much_and_a_piece_each() {
    let memory = ResponseMemory::of(None, NetworkShares::of(OF_ALL));
    let mut responses: Vec<_> = (0..100).map(|_| response(&memory)).collect();
    let held = pieces(&mut responses[..1]);
    assert_eq!(length(&held), OF_CONNECTION, "one alone has all of it");
    let more = pieces(&mut responses);
    assert_eq!(more.len(), 99, "the others have one");
    drop(responses);
    let counted = length(&held) + length(&more) + (held.len() + more.len()) * OF_PIECE;
    assert_eq!(memory.0.held.load(Ordering::Relaxed), counted, "whether they are over or not");
    drop((held, more));
    assert_eq!((memory.0.held.load(Ordering::Relaxed), memory.0.all.left()), (0, OF_ALL));
}

#[test]
fn who_waits_is_woken_when_a_piece_of_its_own_has_left() {
    let memory = ResponseMemory::of(None, NetworkShares::of(OF_ALL));
    let mut responses = [response(&memory), response(&memory)];
    let mut held = pieces(&mut responses[..1]);
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let other = poll(&mut responses[1], &waker).unwrap();
    assert!(poll(&mut responses[1], &waker).is_none());
    let mut part = held.remove(0);
    drop(part.split_to(1));
    assert!(poll(&mut responses[0], &waker).is_none(), "a byte of it is left");
    drop(part);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(poll(&mut responses[0], &waker).is_none(), "there is as much as there may be");
    held.remove(0);
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    assert!(poll(&mut responses[0], &waker).is_some());
    drop(other);
    assert_eq!(woken.0.load(Ordering::Relaxed), 3);
    assert!(poll(&mut responses[1], &waker).is_some());
}

#[test]
fn the_connections_of_a_network_hold_a_quarter_of_all_and_a_piece_for_each_response() {
    const ALL: usize = 64 * PIECE;
    let all = NetworkShares::of(ALL);
    let connection = |address| ResponseMemory::of(network(address), all.clone());
    let mut mine: Vec<_> = (1..=8).map(|_| response(&connection("192.0.2.1"))).collect();
    let held = pieces(&mut mine);
    assert_eq!(length(&held), ALL / 4 + 7 * PIECE);
    let mut others = [response(&connection("198.51.100.1"))];
    assert_eq!(length(&pieces(&mut others)), OF_CONNECTION, "another has what it had before");
}

#[tokio::test(start_paused = true)]
async fn the_next_responses_of_a_network_with_far_too_much_wait() {
    let all = NetworkShares::of(64 * PIECE);
    let connection = |address| ResponseMemory::of(network(address), all.clone());
    let mut mine: Vec<_> = (0..1000).map(|_| response(&connection("192.0.2.1"))).collect();
    let mut held = pieces(&mut mine);
    assert_eq!(length(&held), 64 * PIECE);
    assert_eq!(pieces(&mut [response(&connection("198.51.100.1"))]).len(), 1, "others are served");
    let mut last = mine.pop().unwrap();
    tokio::time::sleep(LOOK).await;
    assert!(poll(&mut last, Waker::noop()).is_none());
    held.pop();
    assert!(std::future::poll_fn(|cx| Pin::new(&mut last).poll_frame(cx)).await.is_some());
}
