//! Keeps the certificates of a server fresh while it runs: reads files again that have changed, renews what the
//! local authority and ACME servers have issued.
//!
//! [`Certificates::open`] reads and checks everything before a port is opened, without asking the network.
//! [`Certificates::start`] sets to work, with one task for each certificate.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::CertificateError;
use crate::Notices;
use crate::watched::{self, Watched};
use crate::{Slot, Source, Store, acme, local};

/// How often the local authority's certificate is looked at: it is renewed a week before its end.
const LOCAL: Duration = Duration::from_secs(3600);

/// Where a server's certificates come from. Empty settings mean one of the local authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Files. The first of all certificates is the default, and files come first.
    pub files: Vec<FilePair>,
    /// Lists of names, each for one certificate that is issued automatically; needs `acme`.
    pub orders: Vec<Vec<String>>,
    /// Who issues them.
    pub acme: Option<acme::Settings>,
    /// `Some`: a certificate of the local authority for this machine's names and these.
    pub local: Option<Vec<String>>,
}

/// A certificate and its key in files, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilePair {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl FilePair {
    /// These files.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        FilePair { certificate: certificate.into(), key: key.into() }
    }
}

/// The certificates of a server, and the tasks that keep them fresh. Dropped, the tasks end.
pub struct Certificates {
    store: Store,
    notices: Notices,
    /// Changed when files are to be looked at now.
    told: watch::Sender<()>,
    kept: Mutex<Vec<Kept>>,
}

/// Where one certificate comes from; equal ones are kept when the settings change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Files(FilePair),
    Acme(Arc<acme::Settings>, Vec<String>),
    Local(Vec<String>),
}

struct Kept {
    origin: Origin,
    slot: Arc<Slot>,
    /// What [`Certificates::start`] is to begin.
    job: Option<Job>,
    task: Option<Task>,
}

enum Job {
    Watch(Box<Watched>),
    Order(Box<acme::Job>),
    Renew(Vec<String>),
}

struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Certificates {
    /// Reads files and folders and makes what can be made without a network.
    ///
    /// # Errors
    /// A certificate that cannot be used, a folder that cannot be written, settings that contradict each other.
    pub fn open(settings: &Settings, notices: Notices) -> Result<Certificates, CertificateError> {
        let store = Store::new(Vec::new())?;
        let (told, _) = watch::channel(());
        let certificates = Certificates { store, notices, told, kept: Mutex::default() };
        certificates.arrange(settings)?;
        Ok(certificates)
    }

    /// What TLS asks. It stays the same whatever [`Certificates::apply`] changes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Begins to keep the certificates fresh, in tasks of the present tokio runtime.
    pub fn start(&self) {
        for kept in self.kept().iter_mut() {
            if let Some(job) = kept.job.take() {
                let slot = Arc::clone(&kept.slot);
                kept.task = Some(Task(self.spawn(job, slot)));
            }
        }
    }

    /// Takes other settings. What is in both goes on undisturbed; files are looked at now.
    ///
    /// # Errors
    /// As [`Certificates::open`]; then nothing has changed.
    pub fn apply(&self, settings: &Settings) -> Result<(), CertificateError> {
        self.arrange(settings)?;
        self.start();
        self.look_now();
        Ok(())
    }

    /// Has the files looked at now rather than within two seconds. Whoever calls this has finished writing them.
    pub fn look_now(&self) {
        self.told.send_replace(());
    }

    fn arrange(&self, settings: &Settings) -> Result<(), CertificateError> {
        let mut held = self.kept();
        let mut next = Vec::new();
        for origin in origins(settings)? {
            let known = held.iter().any(|kept| kept.origin == origin);
            next.push(if known { Err(origin) } else { Ok(prepare(origin, &self.notices)?) });
        }
        let mut kept: Vec<Kept> = Vec::new();
        for entry in next {
            match entry {
                Ok(new) => kept.push(new),
                Err(origin) => {
                    let place = held.iter().position(|old| old.origin == origin);
                    kept.extend(place.map(|place| held.swap_remove(place)));
                }
            }
        }
        self.store.replace(kept.iter().map(|kept| Arc::clone(&kept.slot)).collect());
        *held = kept;
        Ok(())
    }

    fn spawn(&self, job: Job, slot: Arc<Slot>) -> JoinHandle<()> {
        let (store, notices, told) = (self.store.clone(), self.notices.clone(), self.told.subscribe());
        match job {
            Job::Watch(watched) => tokio::spawn(watched::run(*watched, slot, store, told, notices)),
            Job::Order(job) => tokio::spawn(job.run(slot, store, notices)),
            Job::Renew(names) => tokio::spawn(renew(names, slot, store, told, notices)),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn origins(settings: &Settings) -> Result<Vec<Origin>, CertificateError> {
    let mut origins: Vec<Origin> = Vec::new();
    let mut add = |origin: Origin| {
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    };
    for pair in &settings.files {
        add(Origin::Files(pair.clone()));
    }
    if !settings.orders.is_empty() {
        let acme = settings.acme.clone().map(Arc::new).ok_or_else(|| {
            CertificateError::new("automatic certificates need to know who issues them; add a section [acme]")
        })?;
        for names in &settings.orders {
            add(Origin::Acme(Arc::clone(&acme), names.clone()));
        }
    }
    match &settings.local {
        Some(names) => add(Origin::Local(names.clone())),
        None if settings.files.is_empty() && settings.orders.is_empty() => add(Origin::Local(Vec::new())),
        None => {}
    }
    Ok(origins)
}

fn prepare(origin: Origin, notices: &Notices) -> Result<Kept, CertificateError> {
    let (slot, job) = match &origin {
        Origin::Files(pair) => {
            let (watched, identity) = Watched::open(&pair.certificate, &pair.key)?;
            let source = Source::Files { certificate: pair.certificate.clone(), key: pair.key.clone() };
            (Slot::new(source, identity)?, Job::Watch(Box::new(watched)))
        }
        Origin::Acme(settings, names) => {
            let (job, slot) = acme::Job::open(Arc::clone(settings), names, notices)?;
            (slot, Job::Order(Box::new(job)))
        }
        Origin::Local(names) => {
            let slot = Slot::new(Source::Local, local::identity_for(names)?)?;
            (slot, Job::Renew(names.clone()))
        }
    };
    Ok(Kept { origin, slot, job: Some(job), task: None })
}

/// Asks the local authority every hour: it gives back the same certificate until that one's last week.
async fn renew(
    names: Vec<String>,
    slot: Arc<Slot>,
    store: Store,
    mut told: watch::Receiver<()>,
    notices: Notices,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOCAL) => {}
            changed = told.changed() => if changed.is_err() { return },
        }
        let wanted = names.clone();
        let Ok(outcome) = spawn_blocking(move || local::identity_for(&wanted)).await else { return };
        let current = slot.identity();
        let outcome = match outcome {
            Ok(identity) if identity.chain == current.chain => Ok(()),
            Ok(identity) => store.swap(&slot, identity),
            Err(failure) => Err(failure),
        };
        let problem = outcome.err().map(|failure| failure.to_string());
        if let Some(problem) = &problem
            && slot.problem().as_ref() != Some(problem)
        {
            notices.say(&format!("warning: cannot renew the local certificate: {problem}"));
        }
        slot.set_problem(problem);
    }
}
