//! `godwit demo`: the same site over HTTP/2 and HTTP/3 behind the same bad link, side by side.
//!
//! - [`world`] sets the scene: [`site`] is what is visited, by `godwit serve` as everybody runs it; the link is one
//!   for each visit ([`links`], [`preset`]).
//! - Two ways to put packets on it: [`tun_relay`] between two [`namespaces`], with the kernel's TCP, and
//!   [`model_relay`] without privileges, with [`tcp_model`].
//! - [`visitors`] come and go, [`samples`] takes their times down, [`table`], [`html`] and [`json`] tell them.
//!
//! Both protocols are treated alike: the same server, certificate, files, order of requests, number of visitors and
//! chances of loss. Nothing is left out of the figures; what was not answered counts with the time it was waited for.

mod arguments;
mod chart;
mod delay;
mod html;
mod json;
mod links;
mod model_relay;
#[cfg(target_os = "linux")]
mod namespaces;
mod preset;
mod relay;
mod samples;
mod site;
mod table;
mod tcp_model;
#[cfg(target_os = "linux")]
mod tun_relay;
mod visitors;
mod world;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use arguments::Arguments;

use crate::error::{Failure, plain};
use crate::output::{Style, instant_now};
use samples::Figures;
use table::Live;
use visitors::Crowd;
use world::{Setting, World};

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(500);
/// How often a line tells of the progress where there is no terminal, in seconds.
const LINE_EVERY: u64 = 5;
/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if arguments.probe {
        return world::try_kernel().map(|()| ExitCode::SUCCESS);
    }
    if let Some(file) = &arguments.html {
        check_writable(file)?;
    }
    let world = World::make(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no runtime: {}", plain(&error))))?;
    let style = crate::output::stdout_style();
    if !arguments.json {
        print(&table::heading(&world.setting, style))?;
    }
    let outcome = runtime.block_on(measure(&world, arguments.json, style))?;
    let Some(figures) = outcome else { return Ok(ExitCode::from(INTERRUPTED)) };
    tell(&arguments, &world.setting, &figures)?;
    Ok(ExitCode::SUCCESS)
}

/// That the report cannot be kept is to be known before it is made.
fn check_writable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    opened.map(drop).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::file("cannot write the report to", file, plain(error), "give a file in a folder that exists")
}

/// The figures at the end, or nothing after Ctrl-C.
async fn measure(world: &World, quiet: bool, style: Style) -> Result<Option<Figures>, Failure> {
    let (setting, ended) = (&world.setting, world.relay.ended.clone());
    let crowd = Crowd::new(&world.site.certificate, world.route, setting.visitors, ended, setting.seconds)?;
    let recorder = crowd.recorder.clone();
    let terminal = std::io::stdout().is_terminal();
    let mut live = Live::new(style);
    let show = async {
        let began = instant_now();
        let mut ticks =
            tokio::time::interval(if terminal { REDRAW } else { Duration::from_secs(LINE_EVERY) });
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let seconds = began.elapsed().as_secs();
            match (quiet, terminal) {
                (true, _) => {}
                (false, true) => live.draw(&recorder.figures(), &stage(seconds, setting)),
                (false, false) => {
                    let _ = print(&table::progress(&recorder.figures(), seconds));
                }
            }
        }
    };
    tokio::select! {
        () = crowd.come_and_go() => {}
        () = show => {}
        () = interrupted() => return Ok(None),
    }
    let figures = crowd.recorder.figures();
    if terminal && !quiet {
        live.draw(&figures, "");
    }
    Ok(Some(figures))
}

/// Waits for Ctrl-C or, on Unix, for a request to end.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn stage(seconds: u64, setting: &Setting) -> String {
    match setting.seconds.checked_sub(seconds) {
        Some(left) if left > 0 => format!("{left} s to go; Ctrl-C ends it"),
        _ => "waiting for what is under way".to_owned(),
    }
}

/// The result, in every form that was asked for.
fn tell(arguments: &Arguments, setting: &Setting, figures: &Figures) -> Result<(), Failure> {
    if let Some(file) = &arguments.html {
        let page = html::page(setting, figures);
        std::fs::write(file, page).map_err(|error| unwritable(file, &error))?;
    }
    if arguments.json {
        return print(&json::text(setting, figures));
    }
    let style = crate::output::stdout_style();
    let mut text = String::new();
    if !std::io::stdout().is_terminal() {
        text.push('\n');
        text.push_str(&table::table(figures, style));
    }
    for line in table::conclusion(figures, setting) {
        text.push_str(&format!("\n{line}"));
    }
    text.push('\n');
    if let Some(file) = &arguments.html {
        text.push_str(&format!("\nReport: {}\n", file.display()));
    }
    print(&text)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::new(format!("cannot print the result: {}", plain(&error))))
}
