//! Keeps one certificate: takes it from its file, renews it in time, and goes on after failures.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::CertificateIdentifier;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::PrivateKeyDer;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::client::Client;
use super::folder::{self, Folder, Place};
use super::order::{self, Wanted};
use super::problem::{Kind, Problem};
use super::schedule::{self, Span};
use super::{Settings, account};
use crate::CertificateError;
use crate::Notices;
use crate::{Facts, Identity, Slot, Source, Store};
use godwit_text::plain_error;
use godwit_text::{date, unix_now};

/// The longest sleep: the clock may be set, and another server may have renewed the certificate.
const NAP: i64 = 3600;
/// How often the server is asked when to renew, if it does not say itself.
const ASK: i64 = 6 * 3600;
/// What is shown until there is a certificate ends after so many days.
const PLACEHOLDER_DAYS: i64 = 90;
/// Orders under way at a time.
static ORDERS: Semaphore = Semaphore::const_new(4);

/// One certificate of an ACME server.
pub(crate) struct Job {
    settings: Arc<Settings>,
    names: Vec<String>,
    folder: Folder,
    place: Place,
    client: Client,
    failures: u32,
    /// When this program got the certificate.
    issued: Option<i64>,
    suggestion: Suggestion,
}

/// When the server suggests to renew (RFC 9773).
#[derive(Debug, Default)]
struct Suggestion {
    window: Option<Span>,
    /// When to ask again.
    next: i64,
    /// Whether the server knows the certificate.
    is_known: bool,
}

impl Job {
    /// Takes the certificate from its file, or makes one to show meanwhile. The network is not asked.
    ///
    /// # Errors
    /// If the settings do not allow it, or the folder cannot be used.
    pub(crate) fn open(
        settings: Arc<Settings>,
        names: &[String],
        notices: &Notices,
    ) -> Result<(Job, Arc<Slot>), CertificateError> {
        settings.check(names)?;
        let folder = Folder::open(&settings)?;
        let client = Client::new(settings.ca.as_slice())?;
        let place = folder.certificate(names);
        let source = Source::Acme { directory: settings.url().to_owned() };
        let slot = match stored(&place, names) {
            Ok(Some(identity)) => Slot::new(source, identity)?,
            found => {
                if let Err(problem) = found {
                    notices.say(&format!(
                        "warning: {}: {problem}; another is asked for",
                        place.path().display()
                    ));
                }
                notices.say(&format!(
                    "no certificate for {} yet: a self-signed one is shown until {} has issued one",
                    in_words(names),
                    settings.url(),
                ));
                Slot::with_placeholder(source, placeholder(names)?)?
            }
        };
        let names = names.to_vec();
        let suggestion = Suggestion::default();
        let job = Job { settings, names, folder, place, client, failures: 0, issued: None, suggestion };
        Ok((job, slot))
    }

    /// Runs for ever.
    pub(crate) async fn run(mut self: Box<Self>, slot: Arc<Slot>, store: Store, notices: Notices) {
        loop {
            let wait = self.step(&slot, &store, &notices).await;
            tokio::time::sleep(wait).await;
        }
    }

    /// Does what is to be done now, and says how long to wait.
    async fn step(&mut self, slot: &Slot, store: &Store, notices: &Notices) -> Duration {
        let _ = self.adopt(slot, store).await;
        let due = self.due(slot).await;
        let now = unix_now();
        if due > now {
            slot.set_renewal(due);
            return Duration::from_secs((due - now).min(NAP).unsigned_abs());
        }
        match self.renew(slot, store).await {
            Ok(()) => {
                self.failures = 0;
                self.suggestion = Suggestion::default();
                let until = date(slot.identity().facts.not_after);
                notices
                    .say(&format!("certificate for {} issued, valid until {until}", in_words(&self.names)));
                // Whatever the server issues, it is not asked in a circle.
                Duration::from_secs(1)
            }
            Err(problem) => self.failed(slot, &problem, notices),
        }
    }

    fn failed(&mut self, slot: &Slot, problem: &Problem, notices: &Notices) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let asked = problem.wait.max(self.client.take_pause());
        let wait = schedule::wait(self.failures, problem.kind, asked, chance());
        let (what, state) = if slot.is_placeholder() {
            ("no certificate", "a self-signed one is shown meanwhile".to_owned())
        } else {
            let end = date(slot.identity().facts.not_after);
            ("no new certificate", format!("the old one stays, it ends on {end}"))
        };
        notices.say(&format!(
            "warning: {what} for {}: {problem} (next attempt in {}; {state})",
            in_words(&self.names),
            about(wait),
        ));
        slot.set_problem(Some(problem.message.clone()));
        slot.set_renewal(unix_now() + i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
        wait
    }

    /// Shows what lies in the file, if that is not what is shown. True if it is now another.
    async fn adopt(&mut self, slot: &Slot, store: &Store) -> Result<bool, Problem> {
        let (place, names) = (self.place.clone(), self.names.clone());
        let found = spawn_blocking(move || stored(&place, &names)).await;
        let found = found.map_err(|_| self.unkept("the program ends"))?;
        let Some(identity) = found.map_err(|problem| self.unkept(&problem))? else { return Ok(false) };
        let shown = slot.identity();
        let is_worse = !slot.is_placeholder() && identity.facts.not_after < shown.facts.not_after;
        if identity.chain == shown.chain || is_worse {
            return Ok(false);
        }
        self.suggestion = Suggestion::default();
        store.swap(slot, identity).map_err(|failure| self.unkept(&failure.to_string()))?;
        Ok(true)
    }

    /// When to renew: at once, if there is no certificate.
    async fn due(&mut self, slot: &Slot) -> i64 {
        if slot.is_placeholder() {
            return i64::MIN;
        }
        let identity = slot.identity();
        let now = unix_now();
        if now >= self.suggestion.next {
            self.suggestion = self.ask(&identity, now).await;
        }
        let spread = identity.chain.first().map_or(0, |leaf| schedule::spread_of(leaf));
        schedule::due(validity(&identity.facts), self.suggestion.window, self.issued, spread)
    }

    /// Asks the server when to renew. That it does not answer is no harm.
    async fn ask(&self, identity: &Identity, now: i64) -> Suggestion {
        let nothing = Suggestion { next: now + ASK, ..Suggestion::default() };
        let Some(id) = identifier(identity) else { return nothing };
        let Some(account) = account::known(&self.settings, &self.folder, &self.client).await else {
            return nothing;
        };
        match account.renewal_info(&id).await {
            Ok((info, again)) => {
                let window = Span {
                    begin: info.suggested_window.start.unix_timestamp(),
                    end: info.suggested_window.end.unix_timestamp(),
                };
                let again = i64::try_from(again.as_secs()).unwrap_or(ASK).clamp(60, 4 * ASK);
                Suggestion { window: Some(window), next: now + again, is_known: true }
            }
            Err(error) => {
                tracing::debug!(%error, "no suggestion when to renew");
                nothing
            }
        }
    }

    async fn renew(&mut self, slot: &Slot, store: &Store) -> Result<(), Problem> {
        let _turn = ORDERS.acquire().await;
        let lock = self.place.lock().await;
        let _lock = lock.map_err(|error| self.unkept(&plain_error(&error)))?;
        // Somebody else may have done it while this waited for the lock.
        if self.adopt(slot, store).await.unwrap_or(false) {
            return Ok(());
        }
        let text = match self.order(slot, store).await {
            Err(problem) if problem.no_account => {
                account::forget(&self.folder).await;
                self.order(slot, store).await?
            }
            outcome => outcome?,
        };
        let identity = folder::parse(&text, &self.names).map_err(|problem| {
            let url = self.settings.url();
            Problem::new(Kind::Refused, format!("what {url} has issued cannot be used: {problem}"))
        })?;
        let place = self.place.clone();
        let written = spawn_blocking(move || place.write(&text)).await;
        self.issued = Some(unix_now());
        store.swap(slot, identity).map_err(|failure| self.unkept(&failure.to_string()))?;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.unkept(&plain_error(&error))),
            Err(_) => Err(self.unkept("the program ends")),
        }
    }

    async fn order(&self, slot: &Slot, store: &Store) -> Result<String, Problem> {
        let account = account::open(&self.settings, &self.folder, &self.client).await?;
        let replaces = if self.suggestion.is_known { identifier(&slot.identity()) } else { None };
        let (names, url) = (self.names.as_slice(), self.settings.url());
        let wanted = Wanted { names, method: self.settings.method, replaces, url };
        order::issue(&account, &wanted, store.challenges()).await
    }

    fn unkept(&self, problem: &str) -> Problem {
        let path = self.place.path().display();
        let message = format!("cannot keep it in {path}: {problem}; make the folder usable");
        Problem::new(Kind::Unreachable, message)
    }
}

/// The certificate in its file; `None` if there is none.
fn stored(place: &Place, names: &[String]) -> Result<Option<Identity>, String> {
    let text = place.read().map_err(|error| plain_error(&error))?;
    text.map(|text| folder::parse(&text, names)).transpose()
}

fn placeholder(names: &[String]) -> Result<Identity, CertificateError> {
    let fail = |error: rcgen::Error| {
        CertificateError::new(format!("cannot make a self-signed certificate: {error}"))
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(fail)?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(fail)?;
    let at = |unix: i64| std::time::UNIX_EPOCH + Duration::from_secs(unix.unsigned_abs());
    let now = unix_now();
    params.not_before = at(now - 3600).into();
    params.not_after = at(now + PLACEHOLDER_DAYS * 86_400).into();
    let certificate = params.self_signed(&key).map_err(fail)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(CertificateError::new)?;
    let facts = Facts::read(certificate.der()).map_err(CertificateError::new)?;
    Ok(Identity { chain: vec![certificate.der().clone()], key: private, facts, authority: None })
}

fn validity(facts: &Facts) -> Span {
    Span { begin: facts.not_before, end: facts.not_after }
}

fn identifier(identity: &Identity) -> Option<CertificateIdentifier<'static>> {
    let leaf = identity.chain.first()?;
    CertificateIdentifier::try_from(leaf).ok().map(CertificateIdentifier::into_owned)
}

/// A random number, so that servers that failed together do not come back together.
fn chance() -> u8 {
    let mut byte = [0];
    let _ = godwit_tls::fill_random(&mut byte);
    byte[0]
}

fn in_words(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > 5 => format!("{first}, …, {last} ({} names)", names.len()),
        names => names.join(", "),
    }
}

/// `40 s`, `5 min`, `6 h`.
fn about(wait: Duration) -> String {
    match wait.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h", (seconds + 1800) / 3600),
    }
}

#[cfg(test)]
mod tests;
