"""Assembly of a model by name: the builder, its entries, checks and numbering."""

from jaxdyn.model.assembly._builder import ModelBuilder as ModelBuilder
from jaxdyn.model.assembly._checks import MASSLESS as MASSLESS
from jaxdyn.model.assembly._entries import LinkEntry as LinkEntry
from jaxdyn.model.assembly._placement import placement as placement
