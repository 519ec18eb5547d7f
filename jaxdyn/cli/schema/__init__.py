"""Descriptions of values that a user gives in a file or on the command line: type, range and shape.

`kind.read(value, where)` returns the value, converted to what the program uses, or raises `ModelError` with one line:
what was given at `where`, and what was expected. Descriptions are nested, so that one object describes a whole file.
"""

from jaxdyn.cli.schema._composites import Fields as Fields
from jaxdyn.cli.schema._composites import ListOf as ListOf
from jaxdyn.cli.schema._composites import Named as Named
from jaxdyn.cli.schema._composites import OneOf as OneOf
from jaxdyn.cli.schema._composites import Pair as Pair
from jaxdyn.cli.schema._composites import TableOf as TableOf
from jaxdyn.cli.schema._contract import AbstractKind as AbstractKind
from jaxdyn.cli.schema._numbers import Number as Number
from jaxdyn.cli.schema._numbers import Whole as Whole
from jaxdyn.cli.schema._words import Choice as Choice
from jaxdyn.cli.schema._words import Flag as Flag
from jaxdyn.cli.schema._words import Text as Text
