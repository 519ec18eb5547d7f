"""`jaxdyn tour`: demonstrates the library on a seven-joint arm and checks the results."""

from jaxdyn.cli.tour._command import add_parser as add_parser
