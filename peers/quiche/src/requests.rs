//! What goes over a connection: HTTP/0.9 or HTTP/3, asking or answering.

use anyhow::{Context, Result, ensure};
use quiche::h3::{self, NameValue};
use quiche::{Connection, Error};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Requests and answers under way.
pub struct Work {
    /// What is served, or filled.
    folder: PathBuf,
    server: bool,
    authority: String,
    /// Paths that are not asked for yet.
    left: VecDeque<String>,
    /// Files that are being filled.
    open: BTreeMap<u64, File>,
    /// Requests that have not arrived in full.
    heard: BTreeMap<u64, Vec<u8>>,
    /// Answers, and requests, that are not sent in full.
    answers: BTreeMap<u64, Answer>,
    /// With HTTP/3: its state, once there is a connection.
    h3: Option<Option<h3::Connection>>,
}

struct Answer {
    /// Whether the head, if one is due, is sent.
    begun: bool,
    content: Vec<u8>,
    sent: usize,
}

impl Work {
    fn new(case: &str, folder: &Path, server: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            server,
            authority: String::new(),
            left: VecDeque::new(),
            open: BTreeMap::new(),
            heard: BTreeMap::new(),
            answers: BTreeMap::new(),
            h3: (case == "http3").then_some(None),
        }
    }

    pub fn answers(case: &str, root: &Path) -> Self {
        Self::new(case, root, true)
    }

    pub fn requests(case: &str, authority: &str, paths: &[String], folder: &Path) -> Self {
        let left = paths.iter().cloned().collect();
        Self { authority: authority.to_owned(), left, ..Self::new(case, folder, false) }
    }

    /// Whether a client has everything.
    pub fn is_done(&self) -> bool {
        self.left.is_empty() && self.open.is_empty()
    }

    /// Reads and writes as far as possible.
    pub fn go_on(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some(state) = &mut self.h3 {
            let mut h3 = match state.take() {
                Some(h3) => h3,
                None => h3::Connection::with_transport(connection, &h3::Config::new()?)?,
            };
            let outcome = self.go_on_with_h3(connection, &mut h3);
            self.h3 = Some(Some(h3));
            return outcome;
        }
        // What is asked is not opened before it is sent.
        let waiting = self.answers.values().filter(|answer| answer.sent == 0).count() as u64;
        let room = connection.peer_streams_left_bidi().saturating_sub(waiting);
        for _ in 0..if self.server { 0 } else { room.min(self.left.len() as u64) } {
            self.ask()?;
        }
        for id in connection.readable() {
            if self.server { self.hear(connection, id)? } else { self.keep(connection, id)? }
        }
        self.answers.retain(|id, answer| {
            let rest = &answer.content[answer.sent..];
            let sent = connection.stream_send(*id, rest, true);
            answer.progress(sent)
        });
        Ok(())
    }

    // HTTP/0.9 ----------------------------------------------------------------------------------------------

    fn ask(&mut self) -> Result<()> {
        let Some(path) = self.left.front() else { return Ok(()) };
        let id = 4 * self.asked();
        let request = format!("GET /{path}\r\n");
        self.open.insert(id, File::create(self.folder.join(path))?);
        self.left.pop_front();
        self.heard.insert(id, Vec::new());
        self.answers.insert(id, Answer { begun: true, content: request.into_bytes(), sent: 0 });
        Ok(())
    }

    /// How many streams were opened.
    fn asked(&self) -> u64 {
        self.heard.len() as u64
    }

    fn keep(&mut self, connection: &mut Connection, id: u64) -> Result<()> {
        let mut buffer = vec![0; 65_536];
        loop {
            match connection.stream_recv(id, &mut buffer) {
                Ok((len, end)) => {
                    let file = self.open.get_mut(&id).context("a stream that nobody opened")?;
                    file.write_all(&buffer[..len])?;
                    if end {
                        self.open.remove(&id);
                        return Ok(());
                    }
                }
                Err(Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn hear(&mut self, connection: &mut Connection, id: u64) -> Result<()> {
        let mut buffer = [0; 4096];
        while let Ok((len, end)) = connection.stream_recv(id, &mut buffer) {
            let heard = self.heard.entry(id).or_default();
            heard.extend(&buffer[..len]);
            if end {
                let text = String::from_utf8(self.heard.remove(&id).unwrap_or_default())?;
                let path = text.trim_end().strip_prefix("GET ").context("not a request")?;
                let content = read(&self.folder, path)?;
                self.answers.insert(id, Answer { begun: true, content, sent: 0 });
                return Ok(());
            }
        }
        Ok(())
    }

    // HTTP/3 ------------------------------------------------------------------------------------------------

    fn go_on_with_h3(&mut self, connection: &mut Connection, h3: &mut h3::Connection) -> Result<()> {
        while let Some(path) = self.left.front().filter(|_| connection.peer_streams_left_bidi() > 0) {
            let whole = format!("/{path}");
            let fields = [
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", &self.authority),
                (":path", &whole),
            ];
            let fields = fields.map(|(name, value)| h3::Header::new(name.as_bytes(), value.as_bytes()));
            let id = h3.send_request(connection, &fields, true)?;
            self.open.insert(id, File::create(self.folder.join(path))?);
            self.left.pop_front();
        }
        while let Ok((id, event)) = h3.poll(connection) {
            match event {
                h3::Event::Headers { list, .. } if self.server => {
                    let path = list.iter().find(|field| field.name() == b":path").context("no path")?;
                    let content = read(&self.folder, std::str::from_utf8(path.value())?)?;
                    self.answers.insert(id, Answer { begun: false, content, sent: 0 });
                }
                h3::Event::Headers { list, .. } => {
                    let status = list.iter().find(|field| field.name() == b":status").context("no status")?;
                    ensure!(status.value() == b"200", "another status than 200");
                }
                h3::Event::Data => {
                    let mut buffer = vec![0; 65_536];
                    while let Ok(len) = h3.recv_body(connection, id, &mut buffer) {
                        if let Some(file) = self.open.get_mut(&id) {
                            file.write_all(&buffer[..len])?;
                        }
                    }
                }
                h3::Event::Finished => drop(self.open.remove(&id)),
                h3::Event::Reset(code) => anyhow::bail!("stream {id} was reset with {code}"),
                _ => {}
            }
        }
        self.answers.retain(|id, answer| {
            if !answer.begun {
                let length = answer.content.len().to_string();
                let head = [
                    h3::Header::new(b":status", b"200"),
                    h3::Header::new(b"content-length", length.as_bytes()),
                ];
                match h3.send_response(connection, *id, &head, false) {
                    Ok(()) => answer.begun = true,
                    Err(h3::Error::StreamBlocked) => return true,
                    Err(_) => return false,
                }
            }
            match h3.send_body(connection, *id, &answer.content[answer.sent..], true) {
                Ok(len) => answer.progress(Ok(len)),
                Err(h3::Error::Done | h3::Error::StreamBlocked) => true,
                Err(_) => false,
            }
        });
        Ok(())
    }
}

impl Answer {
    /// Takes note of what was sent; false once that is everything, or no more can be.
    fn progress(&mut self, sent: Result<usize, Error>) -> bool {
        match sent {
            Ok(len) => {
                self.sent += len;
                self.sent < self.content.len()
            }
            Err(Error::Done) => true,
            Err(_) => false,
        }
    }
}

fn read(root: &Path, path: &str) -> Result<Vec<u8>> {
    let relative = Path::new(path.trim_start_matches('/'));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(plain, "not a file");
    Ok(fs::read(root.join(relative))?)
}
