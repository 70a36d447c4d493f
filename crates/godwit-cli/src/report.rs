//! `godwit report`: HTTP/2 against HTTP/3 in access logs. Reading, working out and drawing are `godwit-report`'s;
//! here are only the command line, files, progress and the choice of colours.

mod arguments;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use godwit_report::analysis::Settings;
use godwit_report::input::{self, Outcome, Source};
use godwit_report::{Metric, Report, html, terminal};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use arguments::Arguments;

use crate::error::Failure;
use crate::output::{self, print_while_read};

/// Below this a bar would only flicker.
const PROGRESS_FROM: u64 = 100 << 20;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    refuse_overwriting(&arguments)?;
    let metric = arguments.metric;
    // A sketch serves for questions that nobody has asked yet.
    let metrics = if arguments.sketch.is_some() { Metric::ALL } else { &[metric] };
    let Outcome { summary, broken } = read(&arguments, metrics)?;
    if let Some(path) = &arguments.sketch {
        output::write(path, summary.encode())?;
    }
    let mut settings = Settings::default();
    (settings.metric, settings.expected_share) = (metric, arguments.share);
    let report =
        Report::new(&summary, broken.as_ref(), &settings).ok_or_else(|| missing(metric, &summary))?;
    if let Some(path) = &arguments.html {
        output::write(path, html::page(&report))?;
    }
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Failure::new(format!("the report cannot be written as JSON: {error}")))? + "\n"
    } else {
        terminal::render(&report, output::stdout_style().is_coloured())
    };
    print_while_read(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A log that is named by mistake as the file to write would be lost.
fn refuse_overwriting(arguments: &Arguments) -> Result<(), Failure> {
    let written = arguments.html.iter().chain(&arguments.sketch);
    let read = |path: &&PathBuf| arguments.files.iter().any(|source| source.is(path));
    written.clone().find(read).map_or(Ok(()), |path| {
        let file = Source::File(path.clone());
        let remedy = "give another name for what is written";
        Err(Failure::new(format!("{file} is to be read and to be written; {remedy}")))
    })
}

fn read(arguments: &Arguments, metrics: &[Metric]) -> Result<Outcome, Failure> {
    let threads = match arguments.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16),
    };
    let bar = progress(arguments, input::total_size(&arguments.files));
    let outcome = input::read(&arguments.files, metrics, threads, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    outcome.map_err(|error| Failure::new(error.to_string()))
}

fn progress(arguments: &Arguments, size: u64) -> ProgressBar {
    if arguments.quiet || size < PROGRESS_FROM || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(size);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {binary_bytes}/{binary_total_bytes} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn missing(metric: Metric, summary: &godwit_report::Summary) -> Failure {
    let held: Vec<&str> = summary.metrics().map(Metric::name).collect();
    let held = if held.is_empty() { "nothing in common".to_owned() } else { held.join(", ") };
    Failure::new(format!(
        "the sketches do not hold {}, only: {held}; choose another --metric or make them again from the logs",
        metric.name()
    ))
}
