"""Serial robots from textbook descriptions: Denavit-Hartenberg tables, screws, link vectors."""

from jaxdyn.model.conventions._denavit_hartenberg import DHRow as DHRow
from jaxdyn.model.conventions._denavit_hartenberg import from_denavit_hartenberg as from_denavit_hartenberg
from jaxdyn.model.conventions._denavit_hartenberg import (
    from_modified_denavit_hartenberg as from_modified_denavit_hartenberg,
)
from jaxdyn.model.conventions._link_vectors import JointVectors as JointVectors
from jaxdyn.model.conventions._link_vectors import from_link_vectors as from_link_vectors
from jaxdyn.model.conventions._screws import from_screws as from_screws
from jaxdyn.model.conventions._screws import from_space_screws as from_space_screws
