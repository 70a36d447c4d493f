//! Field sections that other encoders have written, and what ours makes of the same fields.
//!
//! `GODWIT_QIFS=DIR cargo test -p godwit-http3 --release --test qifs -- --ignored --nocapture` reads a copy of the public
//! collection `qpackers/qifs` in `DIR`. Files of drafts whose format was another one are not read. With `GODWIT_QIFS_OURS=DIR` what
//! ours makes of it is written there, to be read by others (`peers/python/qpack.py`).
//!
//! `tests/data` has a page's requests and responses as another encoder (ls-qpack) wrote them, by `qpack.py --sample`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects, reason = "tests")]

use godwit_http3::qpack::{DecodeError, Decoder, Field, TableEncoder};
use godwit_http3::{Direction, Side, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn directory() -> PathBuf {
    std::env::var_os("GODWIT_QIFS").expect("GODWIT_QIFS names the directory of the collection").into()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The files in the format of RFC 9204; what is not in a file's name is not known of it.
fn encoded(directory: &Path) -> Vec<PathBuf> {
    // `qpack-06` is another name of it. The examples have no .qif: they are those of appendix B, which other tests have.
    let mut files = files(&directory.join("encoded/qpack-05"));
    files.retain(|path| parameters(name(path)).is_some() && !name(path).starts_with("examples"));
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The lists of fields in a .qif, one after the other.
fn lists(path: &Path) -> Vec<Fields> {
    let text = std::fs::read(path).unwrap();
    let mut lists = vec![Fields::new()];
    for line in text.split(|byte| *byte == b'\n').filter(|line| line.first() != Some(&b'#')) {
        let list = lists.last_mut().unwrap();
        match line.iter().position(|byte| *byte == b'\t') {
            Some(tab) => list.push((line[..tab].to_vec(), line[tab + 1..].to_vec())),
            None if list.is_empty() => {}
            None => lists.push(Fields::new()),
        }
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// The blocks of an encoded file: stream, which is 0 for the encoder's, and bytes.
fn blocks(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut blocks = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(12) {
        let stream = u64::from_be_bytes(head[..8].try_into().unwrap());
        let len = u32::from_be_bytes(head[8..].try_into().unwrap()) as usize;
        blocks.push((stream, &rest[..len]));
        bytes = &rest[len..];
    }
    assert!(bytes.is_empty());
    blocks
}

fn stream(number: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, number)
}

/// The instruction that sets the capacity (RFC 9204 section 4.3.1).
fn set_capacity(capacity: u64) -> Vec<u8> {
    let mut rest = match capacity.checked_sub(31) {
        Some(rest) => rest,
        None => return vec![0x20 | capacity as u8],
    };
    let mut instruction = vec![0x3f];
    while rest >= 128 {
        instruction.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    instruction.push(rest as u8);
    instruction
}

/// The lists of fields that the blocks have, by stream.
fn decode(blocks: &[(u64, &[u8])], capacity: u64, blocked: usize) -> Result<BTreeMap<u64, Fields>, String> {
    let mut decoder = Decoder::with_table(capacity, blocked);
    // Most of them take the capacity for given.
    decoder.on_encoder_stream(&set_capacity(capacity), |_| Ok(())).unwrap();
    let (mut lists, mut waiting) = (BTreeMap::new(), BTreeMap::new());
    let mut read = |decoder: &mut Decoder, id: u64, section: &[u8]| {
        let mut fields = Fields::new();
        let mut sink = |field: Field<'_>| fields.push((field.name.to_vec(), field.value.to_vec()));
        match decoder.decode(stream(id), section, 1 << 20, &mut sink) {
            Ok(_) => Ok(lists.insert(id, fields).is_none()),
            Err(DecodeError::Blocked) => Ok(false),
            Err(error) => Err(format!("stream {id}: {error:?}")),
        }
    };
    for (id, bytes) in blocks {
        if *id != 0 {
            if !read(&mut decoder, *id, bytes)? {
                waiting.insert(*id, *bytes);
            }
            continue;
        }
        decoder.on_encoder_stream(bytes, |_| Ok(())).map_err(|error| error.to_string())?;
        while let Some(ready) = decoder.next_ready() {
            let id = ready.index();
            assert!(read(&mut decoder, id, waiting.remove(&id).unwrap())?);
        }
    }
    if waiting.is_empty() { Ok(lists) } else { Err(format!("{} streams still wait", waiting.len())) }
}

/// A file's capacity, streams that may wait, and whether sections were acknowledged, by its name.
fn parameters(name: &str) -> Option<(u64, usize, bool)> {
    let numbers: Vec<u64> = name.split(['.', '-']).filter_map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [capacity, blocked, ack] => Some((capacity, blocked as usize, ack != 0)),
        _ => None,
    }
}

/// The .qif of which an encoded file was made.
fn source(name: &str) -> String {
    format!("{}.qif", name.split('.').next().unwrap())
}

#[test]
fn what_another_encoder_wrote_is_decoded() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let expected = lists(&directory.join("page.qif"));
    for (name, capacity, blocked) in [("page.out.256.16", 256, 16), ("page.out.4096.16", 4096, 16)] {
        let bytes = std::fs::read(directory.join(name)).unwrap();
        assert!(bytes.len() > 500, "{name}");
        let lists = decode(&blocks(&bytes), capacity, blocked).unwrap();
        assert!(lists.values().eq(&expected), "{name}: other fields");
        // It makes use of the table.
        assert!(decode(&blocks(&bytes), 0, 0).is_err());
    }
}

#[test]
#[ignore = "reads a collection that is not part of this"]
fn what_others_encoded_is_decoded() {
    let directory = directory();
    let (mut good, mut bad) = (0, Vec::new());
    for path in &encoded(&directory) {
        let name = name(path);
        let Some((capacity, blocked, _)) = parameters(name) else { continue };
        let bytes = std::fs::read(path).unwrap();
        let expected = lists(&directory.join("qifs").join(source(name)));
        match decode(&blocks(&bytes), capacity, blocked) {
            Ok(lists) if lists.values().eq(&expected) => good += 1,
            Ok(_) => bad.push(format!("{}: other fields", path.display())),
            Err(error) => bad.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{good} files decoded");
    assert!(bad.is_empty() && good > 0, "{} are not:\n{}", bad.len(), bad.join("\n"));
}

#[test]
#[ignore = "reads a collection that is not part of this"]
fn what_is_wrong_is_not_decoded() {
    let files = files(&directory().join("encoded/errors"));
    assert!(!files.is_empty());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        // Static entries 0 and 62, which drafts did not have.
        let is_right = ["err9", "err10"].contains(&name(&path));
        assert_eq!(decode(&blocks(&bytes), 4096, 100).is_ok(), is_right, "{}", path.display());
    }
}

/// What is on the streams for these lists, in the collection's format, where what was sent is answered `delay` sections later.
fn encode(lists: &[Fields], capacity: u64, blocked: u64, delay: Option<usize>) -> Vec<u8> {
    let mut encoder = TableEncoder::new(capacity);
    encoder.on_settings(capacity, blocked);
    let mut decoder = Decoder::with_table(capacity, blocked as usize);
    let (mut file, mut under_way) = (Vec::new(), VecDeque::new());
    for (number, list) in lists.iter().enumerate() {
        let id = stream(number as u64 + 1);
        let mut lines = Vec::new();
        let mut section = encoder.section(None, &mut lines);
        for (name, value) in list {
            section.field(name, value, false);
        }
        let written = section.finish();
        encoder.on_sent(id, &written);
        let mut bytes = Vec::new();
        written.put_prefix(&mut bytes);
        bytes.extend(lines);
        let instructions = std::mem::take(encoder.instructions());
        for (stream, bytes) in [(0, &instructions), (number as u64 + 1, &bytes)] {
            if !bytes.is_empty() {
                file.extend(stream.to_be_bytes());
                file.extend((bytes.len() as u32).to_be_bytes());
                file.extend(bytes);
            }
        }
        decoder.on_encoder_stream(&instructions, |_| Ok(())).unwrap();
        let mut again = Fields::new();
        let mut sink = |field: Field<'_>| again.push((field.name.to_vec(), field.value.to_vec()));
        decoder.decode(id, &bytes, 1 << 20, &mut sink).unwrap();
        assert_eq!(again, *list);
        let mut feedback = Vec::new();
        decoder.take_feedback(&mut feedback);
        under_way.push_back(feedback);
        if delay.is_some_and(|delay| under_way.len() > delay) {
            encoder.on_decoder_stream(&under_way.pop_front().unwrap(), |_| Ok(false)).unwrap();
        }
    }
    file
}

/// Bytes on all streams.
fn encoded_len(file: &[u8]) -> usize {
    blocks(file).iter().map(|(_, bytes)| bytes.len()).sum()
}

#[test]
#[ignore = "reads a collection that is not part of this"]
fn how_small_ours_is() {
    let directory = directory();
    let mut best: BTreeMap<(String, u64, usize, bool), (usize, String)> = BTreeMap::new();
    for path in &encoded(&directory) {
        let Some((capacity, blocked, ack)) = parameters(name(path)) else { continue };
        let bytes = std::fs::read(path).unwrap();
        let len = encoded_len(&bytes);
        let whose = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let entry = (len, whose);
        let best = best.entry((source(name(path)), capacity, blocked, ack)).or_insert_with(|| entry.clone());
        if entry < *best {
            *best = entry;
        }
    }
    println!("| file | capacity | blocked | answers | best | whose | ours | of it | after 20 sections |");
    for ((file, capacity, blocked, ack), (len, whose)) in best {
        if capacity == 0 {
            continue;
        }
        let lists = lists(&directory.join("qifs").join(&file));
        let ours = |delay| {
            let encoded = encode(&lists, capacity, blocked as u64, delay);
            let len = encoded_len(&encoded);
            (encoded, len)
        };
        let ((encoded, at_once), (_, late)) =
            if ack { (ours(Some(0)), ours(Some(20))) } else { (ours(None), ours(None)) };
        if let Some(written) = std::env::var_os("GODWIT_QIFS_OURS") {
            let name = format!("{}.{capacity}.{blocked}.{}", file.replace(".qif", ".out"), u8::from(ack));
            std::fs::write(Path::new(&written).join(name), encoded).unwrap();
        }
        let share = 100.0 * at_once as f64 / len as f64;
        println!(
            "| {file} | {capacity} | {blocked} | {ack} | {len} | {whose} | {at_once} | {share:.1} % | {late} |"
        );
    }
}
