//! `godwit completions` and `godwit man`: the command line for shells and for `man`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::error::{Failure, plain};
use crate::output::print_while_read;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// Which shell's
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// Folder to write a page for every command into [default: the page of `godwit` to the standard output]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Writes what a shell reads to complete the command line.
pub(crate) fn completions(
    arguments: &CompletionsArguments,
    mut program: Command,
) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "godwit", &mut text);
    print(&text)
}

/// Writes the manual.
pub(crate) fn man(arguments: &ManArguments, program: Command) -> Result<ExitCode, Failure> {
    match &arguments.folder {
        Some(folder) => write_pages(folder, program),
        None => {
            let mut text = Vec::new();
            let rendered = clap_mangen::Man::new(program).render(&mut text);
            rendered.map_err(|error| Failure::new(format!("cannot write the page: {}", plain(&error))))?;
            print(&text)
        }
    }
}

fn write_pages(folder: &Path, program: Command) -> Result<ExitCode, Failure> {
    if !folder.is_dir() {
        return Err(Failure::file("cannot write into", folder, "there is no such folder", "make it first"));
    }
    clap_mangen::generate_to(program, folder).map_err(|error| {
        Failure::file("cannot write into", folder, plain(&error), "give a folder that you may write into")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    // Whoever has read enough closes the pipe.
    print_while_read(text)
        .map_err(|failure| Failure::new(format!("{failure}; look at where the output goes")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_a_page_that_tells_of_exit_codes() {
        let folder = tempfile::tempdir().unwrap();
        man(&ManArguments { folder: Some(folder.path().to_owned()) }, Cli::command()).unwrap();
        for name in ["godwit", "godwit-serve", "godwit-get", "godwit-report", "godwit-doctor", "godwit-demo"]
        {
            let page = folder.path().join(name).with_extension("1");
            assert!(std::fs::metadata(&page).is_ok_and(|page| page.len() > 500), "{}", page.display());
        }
        let page = std::fs::read_to_string(folder.path().join("godwit.1")).unwrap();
        assert!(page.contains("Exit codes"), "{page}");
        let missing = ManArguments { folder: Some(folder.path().join("missing")) };
        assert!(man(&missing, Cli::command()).unwrap_err().to_string().contains("make it first"));
    }
}
