"""The `jaxdyn` command: a folder for each of its subcommands, and what these share."""

from jaxdyn.cli._main import main as main
