//! Data paths whose calls are timed.

use super::{Part, timed};
use godwit::SocketConfig;
use godwit::datapath::{
    Capabilities, Counters, Datapath, DatapathFactory, Progress, Received, RecvBatch, Refused, SendBatch,
    Sent, SocketId, TooLarge, Unreachable,
};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::task::Waker;

/// Makes data paths, or is one, with a clock around what receives and sends.
#[derive(Debug)]
pub(in crate::perf) struct WithClock<T>(pub(in crate::perf) T);

impl DatapathFactory for WithClock<SocketConfig> {
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>> {
        Ok(Box::new(WithClock(self.0.bind(id, addr)?)))
    }
}

impl Datapath for WithClock<Box<dyn Datapath>> {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        timed(Part::Udp, || self.0.receive(batch))
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        timed(Part::Udp, || self.0.send(batch, progress))
    }

    fn id(&self) -> SocketId {
        self.0.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn keep_departure_times(&mut self, zero: i64) {
        self.0.keep_departure_times(zero);
    }

    fn next_gso_refusal(&mut self) -> Option<SocketAddr> {
        self.0.next_gso_refusal()
    }

    fn next_too_large(&mut self) -> Option<TooLarge> {
        self.0.next_too_large()
    }

    fn next_refused(&mut self) -> Option<Refused> {
        self.0.next_refused()
    }

    fn reports_errors(&self) -> bool {
        self.0.reports_errors()
    }

    fn receive_errors(&mut self) {
        timed(Part::Udp, || self.0.receive_errors());
    }

    fn next_unreachable(&mut self) -> Option<Unreachable> {
        self.0.next_unreachable()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        self.0.socket()
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        self.0.wake_on_arrival(waker);
    }
}
