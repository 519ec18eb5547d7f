"""`jaxdyn info`: prints the content of a robot file."""

from jaxdyn.cli.info._command import add_parser as add_parser
