//! What a sender does in virtual time, kept in files: its trace (qlog), and what that says as a drawing (SVG).
//!
//! The drawing is made of the trace's records while they are written, so that nothing of a trace is held. That a file
//! cannot be made is known before anything is simulated. The drawing is there only when it is whole; of a trace there is
//! as much as has happened.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use godwit_report::qlog::Records;
use godwit_transport::observe::{Observer, ObserverFactory};
use godwit_transport::qlog::{Qlog, Sink};

use crate::Error;
use crate::qlog::Analysis;

/// A record goes to all of them.
#[derive(Default)]
struct Outputs {
    file: Option<BufWriter<File>>,
    drawing: Option<BufWriter<PipeWriter>>,
    failed: Option<io::Error>,
}

impl Outputs {
    fn write(&mut self, record: &[u8]) {
        let file = self.file.as_mut().map_or(Ok(()), |file| file.write_all(record));
        let drawing = self.drawing.as_mut().map_or(Ok(()), |drawing| drawing.write_all(record));
        self.failed = self.failed.take().or(file.and(drawing).err());
    }

    fn finish(mut self) -> io::Result<()> {
        let file = self.file.as_mut().map_or(Ok(()), Write::flush);
        let drawing = self.drawing.as_mut().map_or(Ok(()), Write::flush);
        self.failed.map_or(file.and(drawing), Err)
    }
}

/// Files that are being written.
pub(super) struct Recording {
    outputs: Arc<Mutex<Outputs>>,
    qlog: Option<PathBuf>,
    drawing: Option<Drawing>,
}

/// A drawing that is being made.
struct Drawing {
    path: PathBuf,
    artist: JoinHandle<Result<Analysis, Error>>,
}

impl Recording {
    pub(super) fn begin(qlog: Option<&Path>, svg: Option<&Path>) -> Result<Recording, Error> {
        let file = qlog.map(create).transpose()?.map(BufWriter::new);
        let (drawing, writer) = svg.map(Drawing::begin).transpose()?.unzip();
        let outputs = Outputs { file, drawing: writer.map(BufWriter::new), failed: None };
        Ok(Recording { outputs: Arc::new(Mutex::new(outputs)), qlog: qlog.map(Path::to_owned), drawing })
    }

    /// Who is to watch the sender.
    pub(super) fn observers(&self) -> ObserverFactory {
        if self.qlog.is_none() && self.drawing.is_none() {
            return ObserverFactory::default();
        }
        let outputs = Arc::clone(&self.outputs);
        ObserverFactory::new(move |info| {
            let outputs = Arc::clone(&outputs);
            let sink: Sink = Box::new(move |record| {
                if let Ok(mut outputs) = outputs.lock() {
                    outputs.write(record);
                }
            });
            Some(Box::new(Qlog::new(info, sink)) as Box<dyn Observer + Send>)
        })
    }

    /// Nothing more comes.
    pub(super) fn finish(self) -> Result<(), Error> {
        let outputs = self.outputs.lock().map(|mut outputs| std::mem::take(&mut *outputs));
        // This also tells the artist that the trace is over.
        let written = outputs.unwrap_or_default().finish();
        let drawn = self.drawing.map_or(Ok(()), Drawing::finish);
        match self.qlog {
            Some(path) => written.map_err(|error| failed(&path, &error)).and(drawn),
            None => drawn,
        }
    }
}

impl Drawing {
    fn begin(path: &Path) -> Result<(Drawing, PipeWriter), Error> {
        let failed = |error| failed(path, &error);
        check_writable(path).map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        let named = path.to_owned();
        let read = move || Ok(Analysis::of(Records::new(&named, Box::new(BufReader::new(reader))))?);
        let artist = std::thread::Builder::new().name("drawing".to_owned()).spawn(read).map_err(failed)?;
        Ok((Drawing { path: path.to_owned(), artist }, writer))
    }

    fn finish(self) -> Result<(), Error> {
        let analysis = self.artist.join().map_err(|_| Error::new("the drawing was not finished"))??;
        let written = std::fs::write(&self.path, analysis.svg());
        written.map_err(|error| failed(&self.path, &error))
    }
}

/// Whether a file could be written; none is there afterwards that was not before.
fn check_writable(path: &Path) -> io::Result<()> {
    let is_new = !path.try_exists()?;
    File::options().create(true).append(true).open(path)?;
    if is_new { std::fs::remove_file(path) } else { Ok(()) }
}

fn create(path: &Path) -> Result<File, Error> {
    File::create(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let problem = godwit_text::plain_error(error);
    Error::file("cannot write", path, problem, "give a file in a folder that exists")
}
