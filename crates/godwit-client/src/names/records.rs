//! HTTPS records looked up: aliases followed (RFC 9460 section 3), answers remembered for their time.
//!
//! A lookup goes on by itself when nobody waits for it any more: whoever asks next finds what it came to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_text::instant_now;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::question::{Kind, NoAnswer, Resolver};
use super::record::{Meaning, Service, meaning, owner};

/// The most names that stand for one another, one after the other.
const MOST_ALIASES: usize = 8;
/// A lookup with all aliases.
const LONGEST: Duration = Duration::from_secs(6);
/// For how long a failure is not tried again.
const FAILURE_HOLDS: Duration = Duration::from_secs(60);
/// The shortest time for which an answer is believed: a connection is made of it.
const SHORTEST_HOLD: Duration = Duration::from_secs(5);
/// From so many servers on those whose answers hold no longer are forgotten, and from twice as many on all.
const MOST_KEPT: usize = 1000;

/// What DNS says of a server besides its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// There is no record, or none that is understood.
    Nothing,
    /// Where the server is, the preferred place first; at least one.
    Services(Vec<Service>),
    /// It could not be found out.
    Failed(String),
}

impl Said {
    /// The places, the preferred first.
    pub(crate) fn services(&self) -> &[Service] {
        match self {
            Said::Services(services) => services,
            Said::Nothing | Said::Failed(_) => &[],
        }
    }

    /// The preferred place of HTTP/3.
    pub(crate) fn http3(&self) -> Option<&Service> {
        self.services().iter().find(|service| service.has_http3())
    }
}

/// As a part of a sentence.
impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Nothing => formatter.write_str("it has no HTTPS record"),
            Said::Failed(problem) => {
                write!(formatter, "its HTTPS record could not be looked up: {}", problem.escape_debug())
            }
            Said::Services(services) => {
                formatter.write_str("its HTTPS record offers ")?;
                for (number, service) in services.iter().enumerate() {
                    let separator = if number == 0 { "" } else { "; " };
                    write!(formatter, "{separator}{}", service.alpn.join(", ").escape_debug())?;
                    if let Some(target) = &service.target {
                        write!(formatter, " at {}", target.escape_debug())?;
                    }
                    if let Some(port) = service.port {
                        write!(formatter, " on port {port}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// What was said of servers, by host and port, and until when it holds.
type Answers = BTreeMap<(String, u16), (Arc<Said>, Instant)>;

/// Looks records up, and remembers them.
#[derive(Debug)]
pub(crate) struct Records {
    resolver: Arc<dyn Resolver>,
    said: Mutex<Answers>,
    /// Somebody answered since this was asked for last.
    is_heard: AtomicBool,
}

/// What a lookup has come to, or will.
pub(crate) enum Asked {
    Known(Arc<Said>),
    Coming(JoinHandle<Arc<Said>>),
    /// Records are not asked for.
    Never,
}

impl Records {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Records {
        Records { resolver, said: Mutex::default(), is_heard: AtomicBool::new(false) }
    }

    /// What is known of a server.
    pub(crate) fn known(&self, host: &str, port: u16) -> Option<Arc<Said>> {
        let said = self.lock();
        let (said, until) = said.get(&(host.to_owned(), port))?;
        (*until > instant_now()).then(|| Arc::clone(said))
    }

    /// Begins to look up what is not known.
    pub(crate) fn ask(self: &Arc<Records>, host: &str, port: u16) -> Asked {
        if let Some(said) = self.known(host, port) {
            return Asked::Known(said);
        }
        let (records, host) = (Arc::clone(self), host.to_owned());
        Asked::Coming(tokio::spawn(async move { records.look_up(host, port).await }))
    }

    /// Whether an answer has come since this was asked last.
    pub(crate) fn take_heard(&self) -> bool {
        self.is_heard.swap(false, Ordering::Relaxed)
    }

    async fn look_up(&self, host: String, port: u16) -> Arc<Said> {
        let followed = timeout(LONGEST, self.follow(&host, port)).await;
        let (said, holds) = followed.unwrap_or_else(|_| failed(&NoAnswer::Silent));
        tracing::debug!(host, port, %said, "HTTPS record");
        let said = Arc::new(said);
        let now = instant_now();
        let until = now.checked_add(holds.max(SHORTEST_HOLD)).unwrap_or(now);
        let mut all = self.lock();
        if all.len() >= MOST_KEPT {
            all.retain(|_, (_, until)| *until > now);
        }
        if all.len() >= 2 * MOST_KEPT {
            all.clear();
        }
        all.insert((host, port), (Arc::clone(&said), until));
        said
    }

    /// What is said, and for how long that holds.
    async fn follow(&self, host: &str, port: u16) -> (Said, Duration) {
        let mut name = owner(host, port);
        let mut holds = Duration::MAX;
        for aliases in 0..MOST_ALIASES {
            let answer = match self.resolver.ask(&name, Kind::Https).await {
                Ok(answer) => answer,
                Err(problem) => {
                    self.is_heard.fetch_or(problem != NoAnswer::Silent, Ordering::Relaxed);
                    return failed(&problem);
                }
            };
            self.is_heard.store(true, Ordering::Relaxed);
            holds = holds.min(answer.holds);
            match meaning(&name, host, answer.records) {
                Meaning::Services(services) => return (Said::Services(services), holds),
                Meaning::Alias(target) => name = target,
                Meaning::Nothing if aliases == 0 => return (Said::Nothing, holds),
                // The addresses of the last name count (section 3).
                Meaning::Nothing => return (Said::Services(vec![Service::plain(name)]), holds),
            }
        }
        let text = format!("the names that stand for it lead nowhere, or are more than {MOST_ALIASES}");
        failed(&NoAnswer::Failed(text))
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(problem: &NoAnswer) -> (Said, Duration) {
    (Said::Failed(problem.to_string()), FAILURE_HOLDS)
}

impl Asked {
    /// Whether there is something to wait for.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(self, Asked::Coming(_))
    }

    /// Waits for the answer.
    pub(crate) async fn said(&mut self) -> Option<Arc<Said>> {
        if let Asked::Coming(task) = self {
            let said = task.await.unwrap_or_else(|_| Arc::new(failed(&NoAnswer::Silent).0));
            *self = Asked::Known(said);
        }
        match self {
            Asked::Known(said) => Some(Arc::clone(said)),
            Asked::Coming(_) | Asked::Never => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::{Answer, Asking};
    use super::super::record::HttpsRecord;
    use super::*;

    /// Names, and what their record says: the priority, the target, the protocols.
    #[derive(Debug)]
    struct Zone(Vec<(&'static str, (u16, &'static str, &'static str))>);

    impl Resolver for Zone {
        fn ask<'a>(&'a self, name: &'a str, kind: Kind) -> Asking<'a> {
            assert_eq!(kind, Kind::Https);
            let found = self.0.iter().filter(|(owner, _)| *owner == name);
            let records = found.map(|(_, (priority, target, alpn))| HttpsRecord {
                priority: *priority,
                target: (*target).to_owned(),
                alpn: alpn.split_whitespace().map(str::to_owned).collect(),
                ..HttpsRecord::default()
            });
            let records = records.collect();
            let answer = Answer { records, holds: Duration::from_secs(60), ..Answer::default() };
            Box::pin(async { Ok(answer) })
        }
    }

    async fn said(zone: &[(&'static str, (u16, &'static str, &'static str))], port: u16) -> String {
        let records = Arc::new(Records::new(Arc::new(Zone(zone.to_vec()))));
        let said = records.ask("a.example", port).said().await.unwrap();
        assert_eq!(records.known("a.example", port), Some(Arc::clone(&said)));
        assert!(records.take_heard() && !records.take_heard());
        said.to_string()
    }

    #[tokio::test]
    async fn aliases_are_followed_as_far_as_they_lead() {
        let chain = [
            ("a.example", (0, "b.example", "")),
            ("b.example", (0, "c.example", "")),
            ("c.example", (1, "", "h3 h2")),
        ];
        assert_eq!(said(&chain, 443).await, "its HTTPS record offers h3, h2, http/1.1 at c.example");
        assert_eq!(said(&chain[..2], 443).await, "its HTTPS record offers http/1.1 at c.example");
        let circle = [("a.example", (0, "b.example", "")), ("b.example", (0, "a.example", ""))];
        assert!(said(&circle, 443).await.contains("lead nowhere"));
        assert_eq!(said(&chain, 8443).await, "it has no HTTPS record");
        let other = [("_8443._https.a.example", (1, "a.example", "h3"))];
        assert_eq!(said(&other, 8443).await, "its HTTPS record offers h3, http/1.1");
    }
}
