//! A server that an operator controls by signals: its settings are read anew on SIGHUP, its log is opened anew on
//! SIGUSR1, its process is exchanged on SIGUSR2, and SIGINT or SIGTERM end it. The service manager learns of each step.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use godwit_certificates::Notices;
use godwit_text::long_duration;
use tokio::task::AbortHandle;

use crate::config::{self, Scrutiny};
use crate::cut::Cut;
use crate::server::Running;
use crate::signals::{Command, Signals};
use crate::supervisor;

/// What an operation goes by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OperationSettings {
    /// What is served, in words.
    pub what: String,
    /// The configuration that SIGHUP has read again. Default none: then it ends the server, as it is a terminal that is
    /// gone.
    pub file: Option<PathBuf>,
    /// Is told each line of what is found in the file. Default nobody.
    pub findings: Notices,
}

impl OperationSettings {
    /// Without a configuration file.
    pub fn new(what: impl Into<String>) -> OperationSettings {
        OperationSettings { what: what.into(), file: None, findings: Notices::ignored() }
    }
}

/// Why [`Operation::until_end`] is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationEnd {
    /// A signal asked for the end.
    Asked,
    /// Another process has taken over.
    HandedOver,
}

/// A server that does what signals ask for. What comes of it is told by the server's notices.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use godwit_front::{FolderSettings, Operation, OperationSettings, Server, Signals};
///
/// let server = Server::builder().listen("[::]:443".parse()?).files("/", FolderSettings::new("site")).bind()?;
/// let signals = Signals::install()?;
/// let mut operation = Operation::begin(server.start().await?, signals, OperationSettings::new("my site"));
/// operation.until_end().await;
/// let cut = operation.finish(std::time::Duration::from_secs(30)).await;
/// println!("{cut} did not come to an end");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Operation {
    settings: OperationSettings,
    running: Running,
    signals: Signals,
    /// What tells the service manager that the server is alive.
    watchdog: Option<Watchdog>,
    handed_over: bool,
    /// The signal that asked for the end.
    asked_by: Option<&'static str>,
}

/// A task that asks the threads that answer, which do not end before it. Dropped, it ends.
#[derive(Debug)]
struct Watchdog(AbortHandle);

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What follows an attempt to hand over.
#[derive(Clone, Copy)]
enum After {
    Serve,
    /// Somebody asked for that meanwhile.
    Reload,
    End(&'static str),
    HandedOver,
}

impl Operation {
    /// Tells the service manager that the server is ready. `signals` are best installed before the server started, so
    /// that none is lost.
    pub fn begin(running: Running, signals: Signals, settings: OperationSettings) -> Operation {
        let shards = running.shards().clone();
        let watchdog = supervisor::watch(move || {
            let shards = shards.clone();
            async move { shards.answer().await }
        })
        .map(Watchdog);
        supervisor::ready(&settings.what);
        Operation { settings, running, signals, watchdog, handed_over: false, asked_by: None }
    }

    /// Does what signals ask for, until they ask for the end, or another process has taken over.
    pub async fn until_end(&mut self) -> OperationEnd {
        let end = self.heed_signals().await;
        self.handed_over = end == OperationEnd::HandedOver;
        match end {
            // It is the other process now that has to be alive.
            OperationEnd::HandedOver => drop(self.watchdog.take()),
            OperationEnd::Asked => supervisor::stopping(),
        }
        end
    }

    /// Lets what is in progress finish for so long at most, unless a signal asks for the end once more, and returns what
    /// had to be cut off, which the notices say too. After a hand-over the first signal says only what is under way
    /// already: a service manager that ends the server tells all of its processes.
    pub async fn finish(mut self, limit: Duration) -> Cut {
        let Operation { running, signals, handed_over, asked_by, .. } = &mut self;
        let (notices, time) = (running.notices().clone(), long_duration(limit));
        if let Some(signal) = asked_by {
            let under_way = running.under_way();
            notices.say(&match under_way.requests() {
                0 => format!("{signal}: ending"),
                _ => format!("{signal}: ending; {under_way} under way, for which there is {time}"),
            });
        }
        let mut again = None;
        let told = async {
            if *handed_over {
                end(signals, &notices).await;
            }
            end(signals, &notices).await
        };
        let end = async { again = tokio::time::timeout(limit, told).await.ok() };
        let cut = running.shutdown_by(end).await;
        if cut.requests() > 0 {
            notices.say(&match again {
                Some(signal) => format!("{signal} again: cut off {cut}"),
                None => format!("cut off {cut}: the {time} of `drain` are over"),
            });
        }
        cut
    }

    async fn heed_signals(&mut self) -> OperationEnd {
        let file = self.settings.file.clone();
        loop {
            match (self.signals.next().await, &file) {
                (Command::End(signal), _) => return self.asked(signal),
                (Command::Reload, Some(file)) => {
                    supervisor::reloading();
                    self.reload(file).await;
                    supervisor::ready(&file.display().to_string());
                }
                // Without a configuration it is the terminal that is gone.
                (Command::Reload, None) => return self.asked(HANG_UP),
                (Command::Reopen, _) => self.running.reopen_log(),
                (Command::HandOver, file) => match self.hand_over().await {
                    After::End(signal) => return self.asked(signal),
                    After::HandedOver => return OperationEnd::HandedOver,
                    After::Serve => {}
                    After::Reload => {
                        if let Some(file) = file {
                            self.reload(file).await;
                        }
                    }
                },
            }
        }
    }

    fn asked(&mut self, signal: &'static str) -> OperationEnd {
        self.asked_by = Some(signal);
        OperationEnd::Asked
    }

    /// Has a new process take over, and goes on serving if that fails.
    async fn hand_over(&mut self) -> After {
        let Operation { settings, running, signals, .. } = self;
        let say = |line: &str| running.notices().say(line);
        supervisor::reloading();
        let mut attempt = pin!(running.hand_over());
        let mut after = After::Serve;
        loop {
            let command = tokio::select! {
                outcome = &mut attempt => match outcome {
                    Ok(process) => {
                        say(&format!("process {process} has taken over; finishing what is in progress"));
                        supervisor::handed_over(process, &settings.what);
                        return After::HandedOver;
                    }
                    Err(problem) => {
                        say(&format!("no new process has taken over, this one goes on: {problem}"));
                        supervisor::ready(&settings.what);
                        return after;
                    }
                },
                command = signals.next() => command,
            };
            match command {
                // Dropped, the attempt ends what it has started.
                Command::End(signal) => return After::End(signal),
                Command::Reload if settings.file.is_none() => return After::End(HANG_UP),
                // The new process reads it anyway.
                Command::Reload => after = After::Reload,
                Command::Reopen => running.reopen_log(),
                Command::HandOver => say("a new process is being started already; this wish is refused"),
            }
        }
    }

    /// Reads the configuration again. If there is anything wrong with it, the one before goes on.
    async fn reload(&mut self, file: &Path) {
        let path = file.to_owned();
        let read = tokio::task::spawn_blocking(move || config::read(&path, Scrutiny::Start));
        let Ok((settings, findings)) = read.await else { return };
        findings.lines().for_each(|line| self.settings.findings.say(line));
        let outcome = match settings {
            Some(settings) => self.running.reload(settings).map_err(|error| error.to_string()),
            None => Err(format!("{} has mistakes", file.display())),
        };
        let notices = self.running.notices();
        match outcome {
            Ok(()) => notices.say(&format!("{} is in force", file.display())),
            Err(problem) => {
                notices.say(&format!("the configuration before stays in force: {problem}"));
            }
        }
    }
}

/// What ends the server where there is no configuration to be read anew.
const HANG_UP: &str = "SIGHUP";

/// Waits for somebody to end the server, which does nothing else any more; returns by which signal.
async fn end(signals: &mut Signals, notices: &Notices) -> &'static str {
    loop {
        match signals.next().await {
            Command::End(signal) => return signal,
            Command::HandOver => {
                notices.say("this process is finishing, and does not hand over any more");
            }
            Command::Reload | Command::Reopen => {}
        }
    }
}
