//! A transport in memory: two ends, streams with a window each, reads of limited size.

use crate::{Connection, DatagramError, Direction, Read, Side, StreamError, StreamId, Time, Transport};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notice {
    Opened(Direction),
    Readable(StreamId),
    Writable(StreamId),
    Stopped(StreamId, u64),
    Datagrams,
}

pub(super) fn deliver(connection: &mut Connection, io: &mut End, notice: Notice) {
    match notice {
        Notice::Opened(direction) => connection.on_stream_opened(io, direction),
        Notice::Readable(id) => connection.on_readable(io, id),
        Notice::Writable(id) => connection.on_writable(io, id),
        Notice::Stopped(id, code) => connection.on_stopped(io, id, code),
        Notice::Datagrams => connection.on_datagrams_readable(io),
    }
}

#[derive(Debug, Default)]
struct Half {
    data: VecDeque<Bytes>,
    queued: usize,
    finished: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
    writer_waits: bool,
    /// The reader has not read until blocked since it was last told.
    told: bool,
    /// What may come out of it, which may be less than goes in.
    limit: Option<usize>,
    written: usize,
    read: usize,
}

#[derive(Debug)]
struct State {
    window: usize,
    chunk: usize,
    halves: BTreeMap<(StreamId, Side), Half>,
    datagrams: BTreeMap<Side, VecDeque<Bytes>>,
    opened: BTreeMap<(Side, Direction), u64>,
    accepted: BTreeMap<(Side, Direction), u64>,
    notices: BTreeMap<Side, VecDeque<Notice>>,
    closed: Option<(Side, u64)>,
    max_requests: u64,
    max_uni: u64,
    /// What may come out of unidirectional streams that are opened from now on.
    uni_limit: Option<usize>,
    is_memory_scarce: bool,
    now: Time,
}

/// Both ends' view.
#[derive(Debug, Clone)]
pub(super) struct World(Rc<RefCell<State>>);

#[derive(Debug)]
pub(super) struct End {
    side: Side,
    world: World,
}

impl World {
    /// Each stream holds `window` bytes; a read gives at most `chunk`.
    pub(super) fn new(window: usize, chunk: usize) -> World {
        World(Rc::new(RefCell::new(State {
            window,
            chunk,
            halves: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            opened: BTreeMap::new(),
            accepted: BTreeMap::new(),
            notices: BTreeMap::new(),
            closed: None,
            max_requests: 1 << 20,
            max_uni: 1 << 20,
            uni_limit: None,
            is_memory_scarce: false,
            now: Time::ZERO,
        })))
    }

    pub(super) fn end(&self, side: Side) -> End {
        End { side, world: self.clone() }
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        self.0.borrow_mut().now += time;
    }

    pub(super) fn limit_requests(&self, max: u64) {
        self.0.borrow_mut().max_requests = max;
    }

    /// Each end may open so many unidirectional streams.
    pub(super) fn limit_uni_streams(&self, max: u64) {
        self.0.borrow_mut().max_uni = max;
    }

    /// Unidirectional streams that are opened from now on take what they can hold, and let out so much of it.
    pub(super) fn limit_uni(&self, limit: usize) {
        self.0.borrow_mut().uni_limit = Some(limit);
    }

    /// Lets so much out of what `sender` sends on a stream.
    pub(super) fn let_out(&self, id: StreamId, sender: Side, limit: usize) {
        let mut state = self.0.borrow_mut();
        state.halves.get_mut(&(id, sender)).unwrap().limit = Some(limit);
        state.notify_readable(id, sender);
    }

    pub(super) fn set_memory_scarce(&self) {
        self.0.borrow_mut().is_memory_scarce = true;
    }

    pub(super) fn closed(&self) -> Option<(Side, u64)> {
        self.0.borrow().closed
    }

    /// The code with which `sender` reset its half of a stream.
    pub(super) fn reset_code(&self, id: StreamId, sender: Side) -> Option<u64> {
        self.0.borrow().halves.get(&(id, sender)).and_then(|half| half.reset)
    }

    /// The code with which `sender` was asked to stop.
    pub(super) fn stop_code(&self, id: StreamId, sender: Side) -> Option<u64> {
        self.0.borrow().halves.get(&(id, sender)).and_then(|half| half.stopped)
    }

    /// Whether `sender` has a stream to send on.
    pub(super) fn has(&self, id: StreamId, sender: Side) -> bool {
        self.0.borrow().halves.contains_key(&(id, sender))
    }

    pub(super) fn queued(&self, id: StreamId, sender: Side) -> usize {
        self.0.borrow().halves[&(id, sender)].queued
    }
}

impl State {
    fn notify(&mut self, side: Side, notice: Notice) {
        self.notices.entry(side).or_default().push_back(notice);
    }

    /// Tells a reader, once until it has read until blocked.
    fn notify_readable(&mut self, id: StreamId, sender: Side) {
        let half = self.halves.get_mut(&(id, sender)).unwrap();
        if half.stopped.is_none() && !std::mem::replace(&mut half.told, true) {
            self.notify(sender.peer(), Notice::Readable(id));
        }
    }
}

impl End {
    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        self.world.0.borrow_mut().notices.get_mut(&self.side)?.pop_front()
    }

    /// One of the next notices, and not always the first.
    pub(super) fn take_notice(&mut self, nth: usize) -> Option<Notice> {
        let mut state = self.world.0.borrow_mut();
        let notices = state.notices.get_mut(&self.side)?;
        let nth = nth.checked_rem(notices.len())?;
        notices.remove(nth)
    }

    /// Everything that can be read now.
    pub(super) fn drain(&mut self, id: StreamId) -> Vec<u8> {
        let mut out = Vec::new();
        while let Ok(Read::Data(data)) = self.read(id, usize::MAX) {
            out.extend_from_slice(&data);
        }
        out
    }

    pub(super) fn put(&mut self, id: StreamId, bytes: &[u8]) {
        let mut bytes = Bytes::copy_from_slice(bytes);
        assert_eq!((self.write(id, &mut bytes), bytes.len()), (Ok(()), 0));
    }
}

impl Transport for End {
    fn now(&self) -> Time {
        self.world.0.borrow().now
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let mut state = self.world.0.borrow_mut();
        let side = self.side;
        let (most, limit) = match direction {
            Direction::Bidirectional => (state.max_requests, None),
            Direction::Unidirectional => (state.max_uni, state.uni_limit),
        };
        let next = state.opened.entry((side, direction)).or_default();
        if *next >= most {
            return None;
        }
        let id = StreamId::new(side, direction, *next);
        *next += 1;
        state.halves.insert((id, side), Half { limit, ..Half::default() });
        if direction == Direction::Bidirectional {
            state.halves.insert((id, side.peer()), Half::default());
        }
        state.notify(side.peer(), Notice::Opened(direction));
        Some(id)
    }

    fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let mut state = self.world.0.borrow_mut();
        let key = (self.side.peer(), direction);
        let opened = state.opened.get(&key).copied().unwrap_or_default();
        let next = state.accepted.entry(key).or_default();
        (*next < opened).then(|| {
            *next += 1;
            StreamId::new(key.0, direction, *next - 1)
        })
    }

    fn write(&mut self, id: StreamId, data: &mut Bytes) -> Result<(), StreamError> {
        let mut state = self.world.0.borrow_mut();
        let window = state.window;
        let half = state.halves.get_mut(&(id, self.side)).ok_or(StreamError::Unknown)?;
        if let Some(code) = half.stopped {
            return Err(StreamError::Stopped(code));
        }
        if half.finished || half.reset.is_some() {
            return Err(StreamError::Unknown);
        }
        let taken = data.split_to(data.len().min(window.saturating_sub(half.queued)));
        half.queued += taken.len();
        half.written += taken.len();
        half.writer_waits |= !data.is_empty();
        if !taken.is_empty() {
            half.data.push_back(taken);
            state.notify_readable(id, self.side);
        }
        Ok(())
    }

    fn finish(&mut self, id: StreamId) {
        let mut state = self.world.0.borrow_mut();
        state.halves.get_mut(&(id, self.side)).unwrap().finished = true;
        state.notify_readable(id, self.side);
    }

    fn reset(&mut self, id: StreamId, code: u64) {
        let mut state = self.world.0.borrow_mut();
        let half = state.halves.get_mut(&(id, self.side)).unwrap();
        if half.reset.is_none() {
            half.reset = Some(code);
            half.data.clear();
            state.notify_readable(id, self.side);
        }
    }

    fn stop_sending(&mut self, id: StreamId, code: u64) {
        let mut state = self.world.0.borrow_mut();
        let sender = self.side.peer();
        let half = state.halves.get_mut(&(id, sender)).unwrap();
        if half.stopped.is_none() {
            half.stopped = Some(code);
            state.notify(sender, Notice::Stopped(id, code));
        }
    }

    fn read(&mut self, id: StreamId, max: usize) -> Result<Read, StreamError> {
        assert!(max > 0);
        let mut state = self.world.0.borrow_mut();
        let (sender, chunk) = (self.side.peer(), state.chunk);
        let half = state.halves.get_mut(&(id, sender)).ok_or(StreamError::Unknown)?;
        if half.stopped.is_some() {
            return Err(StreamError::Unknown);
        }
        if let Some(code) = half.reset {
            return Err(StreamError::Reset(code));
        }
        let out = half.limit.map_or(usize::MAX, |limit| limit - half.read);
        let Some(front) = half.data.front_mut().filter(|_| out > 0) else {
            if half.finished {
                return Ok(Read::Finished);
            }
            half.told = false;
            return Ok(Read::Blocked);
        };
        let data = front.split_to(front.len().min(max).min(chunk).min(out));
        if front.is_empty() {
            half.data.pop_front();
        }
        half.queued -= data.len();
        half.read += data.len();
        if std::mem::take(&mut half.writer_waits) {
            state.notify(sender, Notice::Writable(id));
        }
        Ok(Read::Data(data))
    }

    fn is_permitted(&self, id: StreamId, _others: &[StreamId]) -> bool {
        let state = self.world.0.borrow();
        let half = &state.halves[&(id, self.side)];
        half.limit.is_none_or(|limit| half.written <= limit)
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), DatagramError> {
        let mut state = self.world.0.borrow_mut();
        let peer = self.side.peer();
        state.datagrams.entry(peer).or_default().push_back(data);
        state.notify(peer, Notice::Datagrams);
        Ok(())
    }

    fn read_datagram(&mut self) -> Option<Bytes> {
        self.world.0.borrow_mut().datagrams.get_mut(&self.side)?.pop_front()
    }

    fn max_datagram_len(&self) -> Option<usize> {
        Some(1200)
    }

    fn is_memory_scarce(&self) -> bool {
        self.world.0.borrow().is_memory_scarce
    }

    fn close(&mut self, code: u64, _reason: &str) {
        let mut state = self.world.0.borrow_mut();
        let open = state.closed.replace((self.side, code));
        assert_eq!(open, None, "closed once");
    }
}

/// Streams that a raw peer opened, by name.
pub(super) fn ids(io: &mut End, direction: Direction, count: usize) -> Vec<StreamId> {
    let ids: Vec<_> = (0..count).map(|_| io.open(direction).unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), count);
    ids
}
