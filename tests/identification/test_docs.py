"""The code of docs/identification.md runs, and its configuration is one that the command takes."""

import pytest

from jaxdyn.cli.fit import _config as _identify_config
from jaxdyn.cli.fit import _method as _identify_method
from jaxdyn.identification import Huber, LevenbergMarquardt, OutputError, Physical, Preparation
from jaxdyn.identification.logs._read import READERS

from ..pages import code_blocks, read_page, run_page


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(code_blocks("identification")) >= 6
    run_page("identification")
    assert {"report.html", "report.json"} <= {p.name for p in tmp_path.iterdir()}


def test_the_configuration_of_the_page_is_read(tmp_path):
    block, other, motors = code_blocks("identification", "toml")
    path = tmp_path / "fit.toml"
    path.write_text(block)
    config = _identify_config.read_config(path)
    assert config.columns.effort.gain == {"shoulder": 0.136, "elbow": 0.087} and config.preparation.cutoff == 5
    assert config.columns.velocity.pattern == r"speed\[(?P<index>\d+)\]" and config.drive == {}
    assert config.preparation.window == (1.0, 79.0) and config.lock == {"gripper_joint": None}
    assert _identify_method.build_method(config) == Physical(loss=Huber()) and config.prior == {"strength": 0.1}
    path.write_text(other)
    method = _identify_method.build_method(_identify_config.read_config(path))
    assert isinstance(method, OutputError) and isinstance(method.solver, LevenbergMarquardt)
    path.write_text(motors)
    config = _identify_config.read_config(path)
    assert config.columns.inputs["voltage"].unit == "mV" and config.motors["elbow"]["gear"] == 50


def test_the_page_names_every_format():
    assert [ending for ending in READERS if f"`{ending}`" not in read_page("identification")] == []
    assert "`longest_gap`" in read_page("identification") and "longest_gap" in Preparation.__dataclass_fields__
