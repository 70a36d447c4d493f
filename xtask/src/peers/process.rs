//! Processes with an end: each has a time limit, what it prints goes to files, and none survives the value
//! that stands for it.

use super::install::find_program;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a process is looked at.
const TICK: Duration = Duration::from_millis(5);
/// How long a process may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of what a failed process printed is shown.
const SHOWN_LINES: usize = 12;

/// A running process. Dropping it ends it.
pub(crate) struct Process {
    child: Child,
    name: String,
    output: PathBuf,
    errors: PathBuf,
}

/// What a process that has ended has left.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    /// For messages: the status and the last lines that it printed.
    pub(crate) story: String,
}

impl Process {
    /// Starts a program; `NAME.out` and `NAME.err` in `folder` take what it prints.
    pub(crate) fn start(command: &Command, folder: &Path, name: &str) -> Result<Self, String> {
        let (output, errors) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let create = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut command = tied_to_us(command);
        command.stdin(Stdio::null()).stdout(create(&output)?).stderr(create(&errors)?);
        let child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        Ok(Self { child, name: name.to_owned(), output, errors })
    }

    /// The system's number of it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed something in which `find` finds what is wanted.
    pub(crate) fn wait_for<T>(
        &mut self,
        limit: Duration,
        find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        let file = self.output.clone();
        self.wait_in(&file, limit, find)
    }

    /// The same for what it says on its standard error.
    pub(crate) fn wait_for_error<T>(
        &mut self,
        limit: Duration,
        find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        let file = self.errors.clone();
        self.wait_in(&file, limit, find)
    }

    fn wait_in<T>(
        &mut self,
        file: &Path,
        limit: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            if let Some(found) = find(&text(file)) {
                return Ok(found);
            }
            if let Some(status) = self.status()? {
                return Err(self.story(&status.to_string()));
            }
            if start.elapsed() > limit {
                return Err(self.story(&format!("not ready after {} s", limit.as_secs())));
            }
            sleep(TICK);
        }
    }

    /// Waits until it ends; past the limit it is ended, which is an error.
    pub(crate) fn finish(mut self, limit: Duration) -> Result<Ended, String> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.status()? {
                let story = self.story(&status.to_string());
                return Ok(Ended { status, output: text(&self.output), story });
            }
            if start.elapsed() > limit {
                self.stop();
                return Err(self.story(&format!("not done after {} s", limit.as_secs())));
            }
            sleep(TICK);
        }
    }

    /// Interrupts it, as Ctrl-C does, and waits until it ends.
    pub(crate) fn interrupt(self, limit: Duration) -> Result<Ended, String> {
        let _ = Command::new("kill").args(["-INT", &self.id().to_string()]).status();
        self.finish(limit)
    }

    /// Ends it at once.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn status(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("{}: {error}", self.name))
    }

    fn story(&self, status: &str) -> String {
        let mut story = format!("  {}: {status}", self.name);
        for file in [&self.output, &self.errors] {
            let text = text(file);
            let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
                story.push_str(&format!("\n    {line}"));
            }
        }
        story
    }

    /// Asks it to end, and ends it if it does not.
    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        if let Ok(None) = self.child.try_wait() {
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
        }
        let start = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if start.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            sleep(TICK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The same command, such that the process ends with us however we end, where the system can do that.
fn tied_to_us(command: &Command) -> Command {
    let mut tied = match find_program("setpriv") {
        Some(setpriv) => {
            let mut tied = Command::new(setpriv);
            tied.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
            tied
        }
        None => Command::new(command.get_program()),
    };
    tied.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            tied.env(name, value);
        }
    }
    tied
}

fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
