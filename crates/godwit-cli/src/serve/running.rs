//! The server under the eyes of whoever started it: told with a banner, configured anew on SIGHUP, exchanged on
//! SIGUSR2, ended in good order.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use godwit_front::config::{self, Scrutiny};
use godwit_front::settings::Handler;
use godwit_front::{Inherited, Notices, Running, Server, Settings, supervisor};

use super::arguments::Arguments;
use super::banner::Banner;
use super::browser::{Browser, Window};
use super::signals::{Signals, Wish};
use super::{print, say};
use crate::error::Failure;

/// How long requests in progress may take after the first signal, where the settings do not say: under the eyes of
/// a person, and as a service.
const GRACE: Duration = Duration::from_secs(5);
const GRACE_OF_SERVICE: Duration = Duration::from_secs(30);

/// Serves until a signal ends it.
///
/// # Errors
/// What keeps it from starting.
pub(super) async fn serve(
    arguments: &Arguments,
    settings: Settings,
    browser: Option<Browser>,
    inherited: Inherited,
) -> Result<(), Failure> {
    let what = what_is_served(arguments, &settings);
    let grace = match std::io::stderr().is_terminal() {
        true => GRACE,
        false => GRACE_OF_SERVICE,
    };
    let drain = settings.drain.unwrap_or(grace);
    let server = Server::builder()
        .settings(settings)
        .inherited(inherited)
        .datapath(arguments.datapath.into())
        .grace(grace)
        .style(crate::output::stdout_style())
        .notices(Notices::new(say))
        .bind()?;
    let mut signals = Signals::install()?;
    let identity = server.identity().clone();
    let banner =
        Banner::new(&what, &identity, &server.addresses(), server.granted(), crate::output::stdout_style());
    let takes_over = server.takes_over();
    let running = server.start().await?;
    let watchdog = supervisor::watch();
    supervisor::ready(&what);
    // Where an older process was, everybody knows how to reach the server.
    let window = if takes_over { None } else { welcome(&banner, &identity.facts.pin, browser)? };

    let mut server = Served { file: arguments.config.as_deref(), what: &what, running };
    let handed_over = server.until_end(&mut signals).await;
    if handed_over {
        // It is the other process now that has to be alive.
        watchdog.inspect(tokio::task::AbortHandle::abort);
    } else {
        supervisor::stopping();
        if crate::output::stderr_style().is_coloured() {
            let _ =
                writeln!(std::io::stderr(), "\nfinishing what is in progress; Ctrl-C again stops at once");
        }
    }
    finish(&mut server.running, drain, handed_over, &mut signals).await;
    server.running.flush_log();
    drop(window);
    Ok(())
}

/// Lets what is in progress finish. After a hand-over the first signal says only what is under way already: a service
/// manager that ends the server tells all of its processes.
async fn finish(running: &mut Running, limit: Duration, handed_over: bool, signals: &mut Signals) {
    let told = async {
        if handed_over {
            signals.end().await;
        }
        signals.end().await;
    };
    tokio::select! {
        () = running.shutdown(limit) => {}
        () = told => {}
    }
}

/// Prints the banner, and opens the browser if one is wanted.
fn welcome(banner: &Banner<'_>, pin: &str, browser: Option<Browser>) -> Result<Option<Window>, Failure> {
    let _ = std::io::stdout().lock().write_all(banner.text().as_bytes());
    match (browser, banner.target()) {
        (Some(browser), Some(target)) => browser.open(target, pin).map(Some),
        _ => Ok(None),
    }
}

fn what_is_served(arguments: &Arguments, settings: &Settings) -> String {
    if let Some(file) = &arguments.config {
        let file = file.display();
        return match settings.sites.len() {
            1 => format!("the site of {file}"),
            sites => format!("the {sites} sites of {file}"),
        };
    }
    match settings.sites.first().and_then(|site| site.routes.first()).map(|route| &route.handler) {
        Some(Handler::Files(files)) => files.folder.display().to_string(),
        Some(Handler::Proxy(proxy)) => proxy.upstreams.join(", "),
        _ => "its example site".to_owned(),
    }
}

/// What follows an attempt to hand over.
#[derive(Clone, Copy)]
enum After {
    Serve,
    /// Somebody asked for that meanwhile.
    Reload,
    End,
    HandedOver,
}

/// A server, and where its settings come from.
struct Served<'a> {
    /// The configuration, if it is in a file.
    file: Option<&'a Path>,
    /// What is served, in words.
    what: &'a str,
    running: Running,
}

impl Served<'_> {
    /// Does what signals ask for, until they ask for the end, or another process has taken over: true.
    async fn until_end(&mut self, signals: &mut Signals) -> bool {
        loop {
            match (signals.next().await, self.file) {
                (Wish::End, _) => return false,
                (Wish::Reload, Some(file)) => {
                    supervisor::reloading();
                    self.reload(file).await;
                    supervisor::ready(&file.display().to_string());
                }
                // Without a configuration it is the terminal that is gone.
                (Wish::Reload, None) => return false,
                (Wish::Reopen, _) => self.running.reopen_log(),
                (Wish::HandOver, file) => match self.hand_over(signals).await {
                    After::End => return false,
                    After::HandedOver => return true,
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

    /// Has a new process take over, and goes on serving if that fails.
    async fn hand_over(&self, signals: &mut Signals) -> After {
        supervisor::reloading();
        let mut attempt = pin!(self.running.hand_over());
        let mut after = After::Serve;
        loop {
            let wish = tokio::select! {
                outcome = &mut attempt => match outcome {
                    Ok(process) => {
                        say(&format!("process {process} has taken over; finishing what is in progress"));
                        supervisor::handed_over(process, self.what);
                        return After::HandedOver;
                    }
                    Err(problem) => {
                        say(&format!("no new process has taken over, this one goes on: {problem}"));
                        supervisor::ready(self.what);
                        return after;
                    }
                },
                wish = signals.next() => wish,
            };
            match wish {
                // Dropped, the attempt ends what it has started.
                Wish::End => return After::End,
                Wish::Reload if self.file.is_none() => return After::End,
                // The new process reads it anyway.
                Wish::Reload => after = After::Reload,
                Wish::Reopen => self.running.reopen_log(),
                Wish::HandOver => say("a new process is being started already; this wish is refused"),
            }
        }
    }

    /// Reads the configuration again. If there is anything wrong with it, the one before goes on.
    async fn reload(&mut self, file: &Path) {
        let path = file.to_owned();
        let read = tokio::task::spawn_blocking(move || config::read(&path, Scrutiny::Start));
        let Ok((settings, findings)) = read.await else { return };
        print(&findings);
        let outcome = match settings {
            Some(settings) => self.running.reload(settings).map_err(|error| error.to_string()),
            None => Err(format!("{} has mistakes", file.display())),
        };
        match outcome {
            Ok(()) => say(&format!("{} is in force", file.display())),
            Err(problem) => say(&format!("the configuration before stays in force: {problem}")),
        }
    }
}
