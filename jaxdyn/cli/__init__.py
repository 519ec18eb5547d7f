"""The `jaxdyn` command."""

from jaxdyn.cli._main import main as main
