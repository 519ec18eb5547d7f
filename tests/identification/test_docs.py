"""The code of docs/identification.md runs, and its configuration is one that the command takes."""

import re
from pathlib import Path

import pytest

from jaxdyn.cli import _identify_config, _identify_method
from jaxdyn.identification import Huber, LevenbergMarquardt, OutputError, Physical, Preparation
from jaxdyn.identification._read import READERS

PAGE = Path(__file__).parents[2] / "docs" / "identification.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
    assert len(blocks) >= 6
    names: dict = {"__name__": "identification_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert {"report.html", "report.json"} <= {p.name for p in tmp_path.iterdir()}


def test_the_configuration_of_the_page_is_read(tmp_path):
    block, other = re.findall(r"^```toml\n(.*?)^```", TEXT, re.S | re.M)
    path = tmp_path / "fit.toml"
    path.write_text(block)
    config = _identify_config.read_config(path)
    assert config.columns.effort.gain == {"shoulder": 0.136, "elbow": 0.087} and config.preparation.cutoff == 5
    assert config.columns.velocity.pattern == r"speed\[(?P<index>\d+)\]" and config.drive == {}
    assert config.preparation.window == (1.0, 79.0) and config.lock == {"gripper_joint": None}
    assert _identify_method.method_of(config) == Physical(loss=Huber()) and config.prior == {"strength": 0.1}
    path.write_text(other)
    method = _identify_method.method_of(_identify_config.read_config(path))
    assert isinstance(method, OutputError) and isinstance(method.solver, LevenbergMarquardt)


def test_the_page_names_every_format():
    assert [ending for ending in READERS if f"`{ending}`" not in TEXT] == []
    assert "`longest_gap`" in TEXT and "longest_gap" in Preparation.__dataclass_fields__
