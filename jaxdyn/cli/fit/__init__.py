"""`jaxdyn fit`: identifies the parameters of a robot from logs and writes a report."""

from jaxdyn.cli.fit._command import add_parser as add_parser
