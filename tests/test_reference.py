"""The API reference lists every public name once, and the guide to extensions every contract."""

import ast
import re
from pathlib import Path

from tests._architecture import ROOT
from tests.pages import DOCS, read_page

PACKAGE = ROOT / "jaxdyn"


def exported_names(folder: Path) -> dict[str, str]:
    """Public names of a folder, and the module from which each is taken."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname: node.module or "" for node in imports for alias in node.names if alias.asname}


def public_names() -> set[str]:
    """Qualified public names of all public folders, each in the folder that documents it."""
    out = set()
    for folder in PACKAGE.iterdir():
        if folder.name[0] not in "_" and (folder / "__init__.py").exists() and folder.name != "cli":
            for name, module in exported_names(folder).items():
                elsewhere = folder.name == "trajopt" and module == "jaxdyn.paths"
                if not elsewhere and name not in ("components",):
                    out.add(f"jaxdyn.{folder.name}.{name}")
    return out


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
