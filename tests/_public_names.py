"""The public names of jaxdyn, from the `__init__` of each public folder."""

import ast
from pathlib import Path

from tests._architecture import ROOT

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
