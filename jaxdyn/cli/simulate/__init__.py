"""`jaxdyn simulate`: simulates a robot and writes its trajectory."""

from jaxdyn.cli.simulate._command import add_parser as add_parser
