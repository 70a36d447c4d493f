//! `godwit report`: HTTP/2 against HTTP/3 in access logs. Reading, working out and drawing are `godwit-report`'s;
//! here are only the command line, files, progress and the choice of colours.

mod arguments;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use godwit_report::analysis::Settings;
use godwit_report::input::{self, Outcome, Source};
use godwit_report::{Metric, Report, html, terminal};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use arguments::Arguments;
use arguments::Time;

use crate::error::{Failure, plain};
use crate::output::print_while_read;

/// Below this a bar would only flicker.
const PROGRESS_FROM: u64 = 100 << 20;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let sources: Vec<Source> = arguments.files.iter().map(|path| source(path)).collect();
    refuse_overwriting(&arguments, &sources)?;
    let metric = arguments.metric.metric();
    // A sketch serves for questions that nobody has asked yet.
    let metrics = if arguments.sketch.is_some() { Metric::ALL } else { &[metric] };
    let Outcome { summary, broken } = read(&arguments, &sources, metrics)?;
    if let Some(path) = &arguments.sketch {
        write(path, "sketch", &summary.encode())?;
    }
    let mut settings = Settings::default();
    settings.metric = metric;
    settings.expected_share = arguments.share;
    let report =
        Report::new(&summary, broken.as_ref(), &settings).ok_or_else(|| missing(metric, &summary))?;
    if let Some(path) = &arguments.html {
        write(path, "page", html::page(&report).as_bytes())?;
    }
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Failure::new(format!("the report cannot be written as JSON: {error}")))? + "\n"
    } else {
        terminal::render(&report, crate::output::stdout_style().is_coloured())
    };
    print_while_read(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" { Source::StandardInput } else { Source::File(path.to_owned()) }
}

/// A log that is named by mistake as the file to write would be lost.
fn refuse_overwriting(arguments: &Arguments, sources: &[Source]) -> Result<(), Failure> {
    let real = |path: &PathBuf| path.canonicalize().ok();
    for path in arguments.html.iter().chain(&arguments.sketch) {
        let taken = sources.iter().any(|source| match source {
            Source::File(source) => real(source).is_some() && real(source) == real(path),
            Source::StandardInput => false,
        });
        if taken {
            return Err(Failure::new(format!(
                "{} is to be read and to be written; give another name for what is written",
                Source::File(path.clone())
            )));
        }
    }
    Ok(())
}

fn read(arguments: &Arguments, sources: &[Source], metrics: &[Metric]) -> Result<Outcome, Failure> {
    let threads = match arguments.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16),
    };
    let bar = progress(arguments, input::total_size(sources));
    let outcome = input::read(sources, metrics, threads, &|bytes| bar.inc(bytes));
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

fn write(path: &Path, what: &str, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| {
        let (file, problem) = (Source::File(path.to_owned()), plain(&error));
        Failure::new(format!("{what} {file}: {problem}; name a file that can be written"))
    })
}

fn missing(metric: Metric, summary: &godwit_report::Summary) -> Failure {
    let held: Vec<String> = summary.metrics().map(name).collect();
    let held = if held.is_empty() { "nothing in common".to_owned() } else { held.join(", ") };
    Failure::new(format!(
        "the sketches do not hold {}, only: {held}; choose another --metric or make them again from the logs",
        name(metric)
    ))
}

/// The metric as it is given on the command line.
fn name(metric: Metric) -> String {
    Time::of(metric).to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
