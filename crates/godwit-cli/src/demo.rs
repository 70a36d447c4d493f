//! `godwit demo`: HTTP/2 and HTTP/3 side by side on the same bad link. The testbed, its visitors and the figures are
//! `godwit-lab`'s; here are the command line and what is drawn on a terminal meanwhile.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use godwit_lab::demo::{self, Figures, LiveTable, Preset, Setting, Testbed, Visitors};
use godwit_text::typed;

use crate::error::{Failure, plain};
use crate::output::{self, instant_now, print, stdout_style};

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(500);
/// How often a line tells of the progress where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

const ABOUT: &str = "\
See HTTP/2 and HTTP/3 side by side on the same bad link

Serves a small site on this machine, puts a bad link in front of it, and lets visitors come over HTTP/2 and over \
HTTP/3 at the same time: each opens a connection, makes a few small requests, loads a page with all that is on it, and goes. \
What is measured is the time from a request to the last byte of its answer.

Both protocols cross the same link as IP packets, and HTTP/2 runs over the kernel's own TCP. That needs Linux, and root \
or user namespaces, and /dev/net/tun; where something is missing, one line says what and how to get it.";

#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT)]
pub(crate) struct Arguments {
    /// The kind of link: mobile, a phone far from the mast (350 ms, 3.5 % loss); wifi, a crowded wireless network (20 ms,
    /// 1 % loss in bursts); satellite, a geostationary one (600 ms, 0.5 % loss); or good, a good line (30 ms, no loss)
    #[arg(long, value_name = "LINK", default_value = "mobile")]
    preset: Preset,

    /// Time there and back, in milliseconds, in place of the preset's
    #[arg(long, value_name = "MS", value_parser = |text: &str| typed::milliseconds(text, 1.0..=5000.0))]
    rtt: Option<Duration>,

    /// Packets lost in each direction, in percent, in place of the preset's
    #[arg(long, value_name = "%", value_parser = |text: &str| typed::percent(text, 0.0..=30.0))]
    loss: Option<f64>,

    /// Rate in each direction, in Mbit/s, in place of the preset's
    #[arg(long, value_name = "MBIT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: Option<u64>,

    /// How many files are on the page besides itself, 2 to 40 kB each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=500))]
    files: u16,

    /// Congestion control of the kernel's TCP, under HTTP/2: cubic, bbr or another that this kernel has
    #[arg(long, value_name = "NAME")]
    tcp: Option<String>,

    /// How long visitors come; what is then under way gets up to 12 seconds more
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Write a report with charts to this file: one page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the result as JSON, and nothing else
    #[arg(long)]
    json: bool,

    /// The number that all chances of the link follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    fn options(&self) -> Result<demo::Options, Failure> {
        let program = std::env::current_exe();
        let program =
            program.map_err(|error| Failure::new(format!("which program this is: {}", plain(&error))))?;
        let mut options = demo::Options::new(self.preset, program);
        let conditions = &mut options.conditions;
        conditions.rtt = self.rtt.unwrap_or(conditions.rtt);
        conditions.loss = self.loss.unwrap_or(conditions.loss);
        conditions.megabits = self.rate.unwrap_or(conditions.megabits);
        (options.objects, options.seconds, options.seed) = (self.files, self.seconds, self.seed);
        options.tcp.clone_from(&self.tcp);
        Ok(options)
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.html {
        output::check_writable(file)?;
    }
    let testbed = Testbed::make(&arguments.options()?)?;
    let runtime = output::runtime()?;
    if !arguments.json {
        print(&testbed.setting().heading(stdout_style()))?;
    }
    let Some(figures) = runtime.block_on(measure(&testbed, arguments.json))? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    print_result(&arguments, testbed.setting(), &figures)?;
    Ok(ExitCode::SUCCESS)
}

/// The figures at the end, or nothing after Ctrl-C.
async fn measure(testbed: &Testbed, quiet: bool) -> Result<Option<Figures>, Failure> {
    let visitors = testbed.visitors()?;
    let mut live = LiveTable::new(stdout_style());
    tokio::select! {
        () = visitors.run() => {}
        () = show(&visitors, testbed.setting().seconds(), &mut live), if !quiet => {}
        () = output::interrupted() => return Ok(None),
    }
    let figures = visitors.figures();
    if std::io::stdout().is_terminal() && !quiet {
        let _ = print(&live.draw(&figures, ""));
    }
    Ok(Some(figures))
}

/// Tells how it stands, again and again.
async fn show(visitors: &Visitors, seconds: u64, live: &mut LiveTable) {
    let began = instant_now();
    let terminal = std::io::stdout().is_terminal();
    let mut ticks = tokio::time::interval(if terminal { REDRAW } else { LINE_EVERY });
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let passed = began.elapsed().as_secs();
        if terminal {
            let _ = print(&live.draw_at(&visitors.figures(), passed, seconds));
        } else {
            let _ = print(&visitors.figures().progress(passed));
        }
    }
}

/// The result, in every form that was asked for.
fn print_result(arguments: &Arguments, setting: &Setting, figures: &Figures) -> Result<(), Failure> {
    if let Some(file) = &arguments.html {
        output::write(file, setting.page(figures))?;
    }
    if arguments.json {
        return print(&setting.json(figures));
    }
    let drawn = std::io::stdout().is_terminal();
    let table = if drawn { String::new() } else { format!("\n{}", figures.table(stdout_style())) };
    let mut text = format!("{table}\n{}", setting.conclusion(figures));
    if let Some(file) = &arguments.html {
        text.push_str(&format!("\nReport: {}\n", file.display()));
    }
    print(&text)
}
