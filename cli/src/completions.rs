//! `fanfold completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;

/// Prints a script that lets a shell complete this command.
///
///   bash   fanfold completions bash > ~/.local/share/bash-completion/completions/fanfold
///   zsh    fanfold completions zsh > "${fpath[1]}/_fanfold"
///   fish   fanfold completions fish > ~/.config/fish/completions/fanfold.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fanfold", &mut script);
    crate::client::print(String::from_utf8_lossy(&script).trim_end()).map(|_| ())
}
