"""The API reference lists every public name once, and the guide to extensions every contract."""

import ast
import re

from tests._public_names import PACKAGE, public_names
from tests.pages import DOCS, read_page


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    listed = re.findall(r"^::: (jaxdyn\.\S+)", text, re.M)
    assert len(listed) == len(set(listed))
    listed = set(listed) - {"jaxdyn.recursion.Topology"}  # also in the reference of models
    assert listed == public_names() - {"jaxdyn.recursion.Topology"}


def test_every_contract_is_explained():
    page = read_page("extending")
    contracts = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.startswith("Abstract")
    }
    assert len(contracts) >= 22
    assert [name for name in sorted(contracts) if f"`{name}`" not in page] == []
