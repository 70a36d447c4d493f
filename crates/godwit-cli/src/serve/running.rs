//! The server while it runs: a banner at the start, signals, and an orderly end.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use godwit_front::{
    Banner, Browser, Cut, Inherited, Notices, Operation, OperationEnd, OperationSettings, Server, Settings,
    Signals, Window,
};

use super::arguments::Arguments;
use super::{print_finding, say};
use crate::error::{Failure, plain};

/// How long requests in progress may take after the first signal, where the settings do not say: under the eyes of
/// a person, and as a service.
const GRACE: Duration = Duration::from_secs(5);
const GRACE_OF_SERVICE: Duration = Duration::from_secs(30);

/// Serves until a signal ends it. Returns what had to be cut off then.
///
/// # Errors
/// What keeps it from starting.
pub(super) async fn serve(
    arguments: &Arguments,
    settings: Settings,
    browser: Option<Browser>,
    inherited: Inherited,
) -> Result<Cut, Failure> {
    let what = what_is_served(arguments, &settings);
    let grace = match std::io::stderr().is_terminal() {
        true => GRACE,
        false => GRACE_OF_SERVICE,
    };
    let drain = settings.drain.unwrap_or(grace);
    let server = Server::builder()
        .settings(settings)
        .inherited(inherited)
        .datapath(arguments.datapath)
        .grace(grace)
        .style(crate::output::stdout_style())
        .notices(Notices::new(say))
        .bind()?;
    let signals = Signals::install()?;
    let pin = server.identity().facts.pin.clone();
    let title = format!("godwit {} serves {what}", env!("CARGO_PKG_VERSION"));
    let banner = Banner::new(title, &server, crate::output::stdout_style());
    let takes_over = server.takes_over();
    let running = server.start().await?;
    let mut operated = OperationSettings::new(what);
    operated.file.clone_from(&arguments.config);
    operated.findings = Notices::new(print_finding);
    let mut operation = Operation::begin(running, signals, operated);
    // Where an older process was, everybody knows how to reach the server.
    let window = if takes_over { None } else { welcome(&banner, &pin, browser)? };
    if operation.until_end().await == OperationEnd::Asked && crate::output::stderr_style().is_coloured() {
        let _ = writeln!(std::io::stderr(), "\nfinishing what is in progress; Ctrl-C again stops at once");
    }
    let cut = operation.finish(drain).await;
    drop(window);
    Ok(cut)
}

/// Prints the banner, and opens the browser if one is wanted.
fn welcome(banner: &Banner, pin: &str, browser: Option<Browser>) -> Result<Option<Window>, Failure> {
    let _ = std::io::stdout().lock().write_all(banner.text().as_bytes());
    let (Some(browser), Some(site)) = (browser, banner.site()) else { return Ok(None) };
    browser.open(site, pin).map(Some).map_err(|error| {
        let remedy = "leave --open out and open the address by hand";
        Failure::file("cannot start the browser", browser.path(), plain(&error), remedy)
    })
}

fn what_is_served(arguments: &Arguments, settings: &Settings) -> String {
    if let Some(file) = &arguments.config {
        let file = file.display();
        return match settings.sites.len() {
            1 => format!("the site of {file}"),
            sites => format!("the {sites} sites of {file}"),
        };
    }
    settings.first_in_words().unwrap_or_else(|| "its example site".to_owned())
}
