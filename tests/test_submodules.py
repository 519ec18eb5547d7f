"""Every folder of jaxdyn is an attribute of it, listed, and loaded no earlier than it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd

FOLDERS = sorted(p.parent.name for p in Path(jd.__file__).parent.glob("[a-z]*/__init__.py"))


@pytest.mark.parametrize("name", [x for x in FOLDERS if x != "cli"])
def test_folders_are_attributes(name):
    assert name in dir(jd)
    assert getattr(jd, name).__name__ == f"jaxdyn.{name}"


def test_an_unknown_attribute_is_refused():
    with pytest.raises(AttributeError, match="module 'jaxdyn' has no attribute 'no_such_name'"):
        jd.no_such_name  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_pictures_and_plans_load_on_demand():
    code = (
        "import sys, jaxdyn; first = {x for x in sys.modules if x.startswith('jaxdyn.')};"
        "assert not first & {'jaxdyn.viz', 'jaxdyn.trajopt', 'jaxdyn.contact'}, first;"
        "jaxdyn.viz.draw; assert 'jaxdyn.viz' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
