//! Our encoder against our decoder, where streams overtake one another and some are given up.

use super::*;
use std::collections::{BTreeMap, VecDeque};

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// A section with these fields is sent on the stream with this number.
    Send(u64, Vec<(u8, u8)>),
    /// So many bytes of the encoder stream arrive.
    Inserts(usize),
    /// The first section that has not arrived, of those after so many streams, does.
    Section(usize),
    /// So many bytes of the decoder stream arrive.
    Answers(usize),
    /// The stream with this number is given up by its reader.
    Cancel(u64),
    /// The transport takes nothing more of the encoder stream, or does again.
    HoldBack(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let fields = prop::collection::vec((0_u8..12, 0_u8..6), 0..8);
    prop_oneof![
        4 => (0_u64..30, fields).prop_map(|(stream, fields)| Step::Send(stream, fields)),
        2 => (1_usize..200).prop_map(Step::Inserts),
        3 => (0_usize..8).prop_map(Step::Section),
        2 => (1_usize..20).prop_map(Step::Answers),
        1 => (0_u64..30).prop_map(Step::Cancel),
        1 => any::<bool>().prop_map(Step::HoldBack),
    ]
}

fn made(field: (u8, u8)) -> (Vec<u8>, Vec<u8>) {
    match field {
        (0, value) => (b":path".to_vec(), vec![b'/' + value; 20]),
        (1, value) => (b"cookie".to_vec(), vec![b'0' + value; 30]),
        (2, _) => (b":method".to_vec(), b"GET".to_vec()),
        (name, value) => (format!("x-name-{name}").into_bytes(), vec![b'a' + value; usize::from(name) * 9]),
    }
}

type Plain = Vec<(Vec<u8>, Vec<u8>)>;

struct World {
    encoder: TableEncoder,
    decoder: Decoder,
    inserts: VecDeque<u8>,
    answers: VecDeque<u8>,
    /// By stream: sections under way, of which the first may have arrived and wait.
    sections: BTreeMap<u64, VecDeque<(Vec<u8>, Plain)>>,
    waiting: Vec<u64>,
    cancelled: Vec<u64>,
    blocked: u64,
    is_held_back: bool,
}

impl World {
    fn new(ours: u64, theirs: u64, blocked: u64) -> World {
        let mut encoder = TableEncoder::new(ours);
        encoder.on_settings(theirs, blocked);
        World {
            encoder,
            decoder: Decoder::with_table(theirs, blocked as usize),
            inserts: VecDeque::new(),
            answers: VecDeque::new(),
            sections: BTreeMap::new(),
            waiting: Vec::new(),
            cancelled: Vec::new(),
            blocked,
            is_held_back: false,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(stream, fields) => self.send(*stream, fields),
            Step::Inserts(count) => self.insert(*count),
            Step::Section(nth) => {
                let arriving = self
                    .sections
                    .iter()
                    .filter(|(stream, sections)| !sections.is_empty() && !self.waiting.contains(stream));
                let stream = arriving.map(|(stream, _)| *stream).cycle().nth(*nth);
                if let Some(stream) = stream {
                    self.arrive(stream);
                }
            }
            Step::Answers(count) => {
                let count = (*count).min(self.answers.len());
                let bytes: Vec<u8> = self.answers.drain(..count).collect();
                tell_encoder(&mut self.encoder, &bytes).unwrap();
            }
            Step::Cancel(stream) if !self.cancelled.contains(stream) => {
                self.cancelled.push(*stream);
                self.sections.remove(stream);
                self.waiting.retain(|waiting| waiting != stream);
                self.decoder.cancel(StreamId::from_u64(*stream * 4));
            }
            Step::Cancel(_) => {}
            Step::HoldBack(is_held_back) => {
                self.is_held_back = *is_held_back;
                self.encoder.hold_back(*is_held_back);
            }
        }
        let mut answers = Vec::new();
        self.decoder.take_feedback(&mut answers);
        self.answers.extend(answers);
    }

    fn send(&mut self, stream: u64, fields: &[(u8, u8)]) {
        let fields: Plain = fields.iter().map(|field| made(*field)).collect();
        let id = StreamId::from_u64(stream * 4);
        let mut lines = Vec::new();
        let mut section = self.encoder.section(Some(id), &mut lines);
        for (name, value) in &fields {
            section.field(name, value, false);
        }
        let written = section.finish();
        let mut bytes = Vec::new();
        written.put_prefix(&mut bytes);
        assert_eq!(bytes.len(), written.prefix_len());
        bytes.extend(lines);
        self.encoder.on_sent(id, &written);
        assert!(!self.is_held_back || self.encoder.instructions().is_empty());
        self.inserts.extend(std::mem::take(self.encoder.instructions()));
        // Who has given it up gets nothing more of it.
        if !self.cancelled.contains(&stream) {
            self.sections.entry(stream).or_default().push_back((bytes, fields));
        }
    }

    fn insert(&mut self, count: usize) {
        let count = count.min(self.inserts.len());
        let bytes: Vec<u8> = self.inserts.drain(..count).collect();
        tell_decoder(&mut self.decoder, &bytes).unwrap();
        while let Some(ready) = self.decoder.next_ready() {
            let stream = ready.as_u64() / 4;
            assert!(self.waiting.contains(&stream));
            self.waiting.retain(|waiting| *waiting != stream);
            self.arrive(stream);
            assert!(!self.waiting.contains(&stream), "it has all it needs");
        }
    }

    /// The first section of a stream arrives, or is tried once more.
    fn arrive(&mut self, stream: u64) {
        let (bytes, expected) = &self.sections[&stream][0];
        let mut fields = Plain::new();
        let mut sink = |field: Field<'_>| fields.push((field.name.to_vec(), field.value.to_vec()));
        match self.decoder.decode(StreamId::from_u64(stream * 4), bytes, 1 << 20, &mut sink) {
            Ok(_) => {
                assert_eq!(&fields, expected);
                self.sections.get_mut(&stream).unwrap().pop_front();
            }
            Err(DecodeError::Blocked) => {
                assert!(fields.is_empty());
                self.waiting.push(stream);
                assert!(self.waiting.len() as u64 <= self.blocked);
            }
            Err(error) => panic!("stream {stream}: {error:?}"),
        }
    }

    /// All that is under way arrives.
    fn settle(&mut self) {
        self.step(&Step::Inserts(usize::MAX));
        assert!(self.waiting.is_empty());
        while self.sections.values().any(|sections| !sections.is_empty()) {
            self.step(&Step::Section(0));
            assert!(self.waiting.is_empty(), "it waits for what never comes");
        }
        self.step(&Step::Answers(usize::MAX));
        self.step(&Step::Answers(usize::MAX));
    }
}

#[test]
fn what_is_in_use_stays_when_the_table_is_full() {
    let mut world = World::new(400, 400, 4);
    let agent = [b'a'; 60];
    for number in 0..200_u64 {
        let id = StreamId::from_u64(number * 4);
        let mut lines = Vec::new();
        let mut section = world.encoder.section(Some(id), &mut lines);
        section.field(b"x-agent", &agent, false);
        // Comes twice, and is inserted for that.
        let page = format!("/the/page/with/the/number/{}", number / 2);
        section.field(b"x-page", page.as_bytes(), false);
        let written = section.finish();
        let (required, oldest) = (written.required, written.oldest);
        world.encoder.on_sent(id, &written);
        let mut bytes = Vec::new();
        written.put_prefix(&mut bytes);
        let is_short = bytes.len() + lines.len() < 48;
        bytes.extend(lines);
        let instructions = std::mem::take(world.encoder.instructions());
        assert!(
            number < 2 || (is_short && instructions.len() < 48 && oldest < required),
            "{number}: the agent is there"
        );
        tell_decoder(&mut world.decoder, &instructions).unwrap();
        world.decoder.decode(id, &bytes, 1000, &mut |_| {}).unwrap();
        let mut answers = Vec::new();
        world.decoder.take_feedback(&mut answers);
        tell_encoder(&mut world.encoder, &answers).unwrap();
    }
    let dropped = world.encoder.table().unwrap().table().dropped();
    assert!(dropped > 10, "others have left: {dropped}");
}

proptest! {
    #[test]
    fn whatever_overtakes_what_all_is_read_as_it_was_written(
        steps in prop::collection::vec(step(), 1..200),
        ours in prop_oneof![Just(0_u64), 32_u64..500, Just(4096)],
        theirs in prop_oneof![Just(0_u64), 32_u64..500, Just(4096)],
        blocked in 0_u64..6,
    ) {
        let mut world = World::new(ours, theirs, blocked);
        for step in &steps {
            world.step(step);
        }
        world.settle();
        prop_assert!(world.encoder.is_settled(), "nothing is kept any more");
        // The table can be made anew, twice over.
        for step in [Step::HoldBack(false), Step::Send(100, vec![(3, 0)]), Step::Send(101, vec![(3, 0)])] {
            world.step(&step);
        }
        world.settle();
        prop_assert!(world.encoder.is_settled());
    }

    #[test]
    fn whatever_the_peer_says_is_an_error_at_most(
        inserts in prop::collection::vec(any::<u8>(), 0..300),
        sections in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10),
        answers in prop::collection::vec(any::<u8>(), 0..30),
        limit in 0_u64..2000,
    ) {
        let mut decoder = Decoder::with_table(220, 3);
        let (head, tail) = inserts.split_at(inserts.len() / 2);
        for inserts in [&[0x3f, 0xbd, 1], head, tail] {
            if tell_decoder(&mut decoder, inserts).is_err() {
                break;
            }
            for (number, section) in sections.iter().enumerate() {
                let mut size = 0;
                let mut sink = |field: Field<'_>| size += field_size(field.name, field.value);
                let _ = decoder.decode(StreamId::from_u64(number as u64 * 4), section, limit, &mut sink);
                prop_assert!(size <= limit);
            }
            while decoder.next_ready().is_some() {}
        }
        let mut encoder = TableEncoder::new(220);
        encoder.on_settings(220, 3);
        for stream in 0..4 {
            let mut lines = Vec::new();
            let mut section = encoder.section(None, &mut lines);
            section.field(b"x-name", b"a value", false);
            let written = section.finish();
            encoder.on_sent(StreamId::from_u64(stream * 4), &written);
        }
        let _ = tell_encoder(&mut encoder, &answers);
    }
}
