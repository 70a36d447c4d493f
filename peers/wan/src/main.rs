//! quinn's CUBIC and BBR in the networks of a table that `godwit wan --csv` has written, beside the figures in it.
//!
//! quinn's own state machine runs over the link model that Godwit's simulator has, in virtual time: an upload of ten seconds
//! on one stream, counted as there. `quinn-networks FILE.csv` prints a row for each network.

mod simulation;

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use simulation::{Controller, Network, Outcome};

/// The columns that are read, by their names.
const COLUMNS: [&str; 8] = ["NetMbps", "RttMs", "QueuePkts", "Loss", "Reorder", "DelayMs", "Usage", "Waste"];

/// A network, and Godwit's use and waste in it.
struct Row {
    network: Network,
    godwit: [f64; 2],
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: quinn-networks FILE.csv, as godwit wan --csv FILE.csv writes it");
        return ExitCode::from(2);
    };
    match std::fs::read_to_string(&file).map_err(|error| error.to_string()).and_then(|text| rows(&text)) {
        Ok(rows) => {
            print!("{}", table(&rows, &try_all(&rows)));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{file}: {problem}; give a table that godwit wan --csv has written");
            ExitCode::FAILURE
        }
    }
}

fn rows(text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let places = COLUMNS.map(|name| head.iter().position(|column| *column == name));
    lines
        .enumerate()
        .map(|(number, line)| {
            let fields: Vec<&str> = line.split(',').collect();
            let field = |at: usize| fields.get(places[at]?)?.parse::<f64>().ok();
            let whole = |at: usize| field(at).map(|number| number as u32);
            let read = || {
                let network = Network {
                    megabits: whole(0)?,
                    rtt: whole(1)?,
                    queue: whole(2)?,
                    loss: whole(3)?,
                    reorder: whole(4)?,
                    delay: whole(5)?,
                };
                Some(Row { network, godwit: [field(6)?, field(7)?] })
            };
            read().ok_or_else(|| format!("line {} is not that of a network", number + 2))
        })
        .collect()
}

/// Both controllers in every network, on all processors.
fn try_all(rows: &[Row]) -> Vec<[Outcome; 2]> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(row) = rows.get(at) else { return };
            let outcomes = [Controller::Cubic, Controller::Bbr]
                .map(|controller| simulation::run(&row.network, controller, 1));
            let mut done = done.lock().unwrap();
            done.push((at, outcomes));
            eprint!("\r{} of {} networks", done.len(), rows.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    eprintln!();
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, outcomes)| outcomes).collect()
}

fn table(rows: &[Row], outcomes: &[[Outcome; 2]]) -> String {
    let mut text = String::from(
        "                                              use of the link, %       waste, %\n\
         NetMbps RttMs QueuePkts  Loss Reorder DelayMs  godwit  cubic    bbr   godwit  cubic    bbr\n",
    );
    let mut sums = [0.0; 6];
    for (Row { network, godwit }, [cubic, bbr]) in rows.iter().zip(outcomes) {
        let figures = [godwit[0], cubic.usage, bbr.usage, godwit[1], cubic.waste, bbr.waste];
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure / rows.len() as f64;
        }
        let Network { megabits, rtt, queue, loss, reorder, delay } = network;
        let _ = write!(text, "{megabits:>7} {rtt:>5} {queue:>9} {loss:>5} {reorder:>7} {delay:>7} ");
        line(&mut text, figures);
        for (name, outcome) in [("cubic", cubic), ("bbr", bbr)] {
            if let Some(broken) = &outcome.broken {
                let _ = writeln!(text, "        {name}: {broken}");
            }
        }
    }
    let _ = write!(text, "{:<46} ", format!("mean of {} networks", rows.len()));
    line(&mut text, sums);
    text
}

fn line(text: &mut String, [a, b, c, d, e, f]: [f64; 6]) {
    let _ = writeln!(text, "{a:>7.1} {b:>6.1} {c:>6.1} {d:>8.1} {e:>6.1} {f:>6.1}");
}
