//! The command line: which commands there are. What each one takes is declared in its own folder.

use clap::{Parser, Subcommand};

use crate::{demo, doctor, get, perf, report, serve};

/// The overview in place of clap's flat list: the commands by what one wants to do.
const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

For use:
  serve   Serve a folder over HTTP/3, HTTP/2 and HTTP/1.1 on one port
  get     Fetch URLs over HTTP/3, HTTP/2 or HTTP/1.1
  report  Compare HTTP/2 and HTTP/3 in access logs
  doctor  Find what keeps HTTP/3 from working, here or at a site

Laboratory:
  perf    Measure throughput, requests and latency between two machines
  demo    See HTTP/2 and HTTP/3 side by side on the same bad link

Options:
{options}

`godwit help COMMAND` or `godwit COMMAND --help` tells more about one of them.
";

#[derive(Debug, Parser)]
#[command(name = "godwit", version, about = "QUIC and HTTP/3 in one program", help_template = TEMPLATE)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a folder over HTTP/3, HTTP/2 and HTTP/1.1 on one port
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
    /// Measure throughput, requests and latency between two machines
    Perf(perf::Arguments),
    /// See HTTP/2 and HTTP/3 side by side on the same bad link
    Demo(demo::Arguments),
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
    fn the_overview_names_every_command() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let line = TEMPLATE.lines().find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap_or_else(|| panic!("the overview has no line for {name}"));
            assert!(line.ends_with(&about), "{line:?} should say {about:?}");
        }
    }
}
