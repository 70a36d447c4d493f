//! Keeps the certificates of a server fresh while it runs: reads files again that have changed, renews what the
//! local authority and ACME servers have issued.
//!
//! [`Keeper::open`] reads and checks everything before a port is opened, without asking the network.
//! [`Keeper::start`] sets to work, with one task for each certificate.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

use super::watched::{self, Watched};
use super::{Slot, Source, Store, acme, local};
use crate::error::Failure;

/// How often the local authority's certificate is looked at: it is renewed a week before its end.
const LOCAL: Duration = Duration::from_secs(3600);

/// Where a server's certificates come from. Empty settings mean one of the local authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Files. The first of all certificates is the default, and files come first.
    pub(crate) files: Vec<Pair>,
    /// Lists of names, each for one certificate that is issued automatically; needs `acme`.
    pub(crate) orders: Vec<Vec<String>>,
    /// Who issues them.
    pub(crate) acme: Option<acme::Settings>,
    /// `Some`: a certificate of the local authority for this machine's names and these.
    pub(crate) local: Option<Vec<String>>,
}

/// A certificate and its key in files, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The chain, the server's own certificate first.
    pub(crate) certificate: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

/// Takes lines for the operator.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Lines on the standard error.
pub(crate) fn on_stderr() -> Say {
    use std::io::Write;
    // In one piece: other processes may write to the same place.
    Arc::new(|line| drop(std::io::stderr().write_all(format!("godwit: {line}\n").as_bytes())))
}

/// The certificates of a server, and the tasks that keep them fresh. Dropped, the tasks end.
pub(crate) struct Keeper {
    store: Store,
    say: Say,
    /// Changed when files are to be looked at now.
    told: watch::Sender<()>,
    kept: Mutex<Vec<Kept>>,
}

/// Where one certificate comes from; equal ones are kept when the settings change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Files(Pair),
    Acme(Arc<acme::Settings>, Vec<String>),
    Local(Vec<String>),
}

struct Kept {
    origin: Origin,
    slot: Arc<Slot>,
    /// What [`Keeper::start`] is to begin.
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

impl Keeper {
    /// Reads files and folders and makes what can be made without a network.
    ///
    /// # Errors
    /// A certificate that cannot be used, a folder that cannot be written, settings that contradict each other.
    pub(crate) fn open(settings: &Settings, say: Say) -> Result<Keeper, Failure> {
        let store = Store::new(Vec::new())?;
        let (told, _) = watch::channel(());
        let keeper = Keeper { store, say, told, kept: Mutex::default() };
        keeper.arrange(settings)?;
        Ok(keeper)
    }

    /// What TLS asks. It stays the same whatever [`Keeper::apply`] changes.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Begins to keep the certificates fresh, in tasks of the present tokio runtime.
    pub(crate) fn start(&self) {
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
    /// As [`Keeper::open`]; then nothing has changed.
    pub(crate) fn apply(&self, settings: &Settings) -> Result<(), Failure> {
        self.arrange(settings)?;
        self.start();
        self.look_now();
        Ok(())
    }

    /// Has the files looked at now rather than within two seconds. Whoever calls this has finished writing them.
    pub(crate) fn look_now(&self) {
        self.told.send_replace(());
    }

    fn arrange(&self, settings: &Settings) -> Result<(), Failure> {
        let mut held = self.kept();
        let mut next = Vec::new();
        for origin in origins(settings)? {
            let known = held.iter().any(|kept| kept.origin == origin);
            next.push(if known { Err(origin) } else { Ok(prepare(origin, &self.say)?) });
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
        let (store, say, told) = (self.store.clone(), Arc::clone(&self.say), self.told.subscribe());
        match job {
            Job::Watch(watched) => tokio::spawn(watched::run(*watched, slot, store, told, say)),
            Job::Order(job) => tokio::spawn(job.run(slot, store, say)),
            Job::Renew(names) => tokio::spawn(renew(names, slot, store, told, say)),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn origins(settings: &Settings) -> Result<Vec<Origin>, Failure> {
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
            Failure::new("automatic certificates need to know who issues them; add a section [acme]")
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

fn prepare(origin: Origin, say: &Say) -> Result<Kept, Failure> {
    let (slot, job) = match &origin {
        Origin::Files(pair) => {
            let (watched, identity) = Watched::open(&pair.certificate, &pair.key)?;
            let source = Source::Files { certificate: pair.certificate.clone(), key: pair.key.clone() };
            (Slot::new(source, identity)?, Job::Watch(Box::new(watched)))
        }
        Origin::Acme(settings, names) => {
            let (job, slot) = acme::Job::open(Arc::clone(settings), names, say)?;
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
async fn renew(names: Vec<String>, slot: Arc<Slot>, store: Store, mut told: watch::Receiver<()>, say: Say) {
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
            say(&format!("warning: cannot renew the local certificate: {problem}"));
        }
        slot.set_problem(problem);
    }
}
