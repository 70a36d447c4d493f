//! The command line: which commands there are. What each one takes is declared in its own module.

use clap::{Parser, Subcommand};

#[cfg(unix)]
use crate::emulate;
use crate::{dashboard, demo, doctor, get, interop, manual, perf, qlog, report, serve, wan};

/// The overview in place of clap's flat list: the commands by what one wants to do. It fits a screen.
const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

For use:
  serve     Serve sites over HTTP/3, HTTP/2 and HTTP/1.1 on one port
  get       Fetch URLs over HTTP/3, HTTP/2 or HTTP/1.1
  report    Compare HTTP/2 and HTTP/3 in access logs
  doctor    Find what keeps HTTP/3 from working, here or at a site

Laboratory:
  demo      See HTTP/2 and HTTP/3 side by side on the same bad link
  emulate   Run programs on both sides of a modelled link
  perf      Measure throughput, requests and latency between two machines
  qlog      Read traces of connections: stalls, losses and their causes
  wan       See how much of a link is used, in a thousand emulated networks
  dashboard Show how figures went over commits, beside other programs

Examples:
  godwit serve --proxy http://127.0.0.1:8080    HTTP/3 in front of your site
  godwit get https://example.com/file -O        fetch by the best protocol
  godwit doctor https://example.com/            why is it not HTTP/3?

`godwit COMMAND --help` tells more; `godwit man DIR` writes manual pages,
`godwit completions SHELL` completes the command line.{after-help}
";

/// For every command: scripts rely on it.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something failed, and one line on the standard error says what
  2  wrong usage, or a configuration with mistakes
  3  serve: ended, and requests that were under way had to be cut off

Colours are for terminals only; NO_COLOR in the environment switches them off.";

#[derive(Debug, Parser)]
#[command(name = "godwit", version, about = "QUIC and HTTP/3 in one program", help_template = TEMPLATE)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve sites over HTTP/3, HTTP/2 and HTTP/1.1 on one port
    ///
    /// SIGTERM and SIGINT end the server when what is under way is done; SIGHUP has it read --config again, SIGUSR1
    /// open the access log anew. SIGUSR2 exchanges it for a new process of the program, perhaps of a newer version, and
    /// no client notices (Linux).
    #[command(after_long_help = EXIT_CODES)]
    Serve(serve::Arguments),
    /// Fetch URLs over HTTP/3, HTTP/2 or HTTP/1.1
    ///
    /// Fetches many at a time on one connection per server. A single body goes to the standard output unless -o,
    /// -O or --output-dir says otherwise. Files appear under their names only when they are whole. The exit code
    /// is 0 if everything was fetched, 1 if anything failed (a status of 400 or more counts as failure) and 2 for
    /// wrong usage.
    Get(get::Arguments),
    /// Compare HTTP/2 and HTTP/3 in access logs
    Report(report::Arguments),
    /// Find what keeps HTTP/3 from working, here or at a site
    Doctor(doctor::Arguments),
    /// See HTTP/2 and HTTP/3 side by side on the same bad link
    Demo(demo::Arguments),
    /// Run programs on both sides of a modelled link
    #[cfg(unix)]
    Emulate(emulate::Arguments),
    /// Measure throughput, requests and latency between two machines
    Perf(perf::Arguments),
    /// Read traces of connections: stalls, losses and their causes
    Qlog(qlog::Arguments),
    /// See how much of a link is used, in a thousand emulated networks
    Wan(wan::Arguments),
    /// Show how figures went over commits, beside other programs
    Dashboard(dashboard::Arguments),
    /// Be an endpoint of the QUIC interop runner
    #[command(hide = true)]
    Interop(interop::Arguments),
    /// Write what a shell reads to complete the command line
    #[command(hide = true)]
    Completions(manual::CompletionsArguments),
    /// Write manual pages
    #[command(hide = true)]
    Man(manual::ManArguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_overview_fits_a_screen() {
        let help = Cli::command().render_help().to_string();
        assert!(help.lines().count() <= 25, "{} lines:\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn the_overview_names_every_command() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let line = TEMPLATE.lines().find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap_or_else(|| panic!("the overview has no line for {name}"));
            assert!(line.ends_with(&about), "{line:?} should say {about:?}");
        }
    }
}
