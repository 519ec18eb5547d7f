"""The code of docs/files.md runs."""

import re
from pathlib import Path

import jaxdyn as jd
from tests.io._texts import arm

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")


def test_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(arm("base", "<gazebo/>"))
    blocks = [x for x in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if "mjcf" not in x]
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "files.md", "exec"), names)
    assert "<gazebo>" in capsys.readouterr().out
    assert isinstance(names["model"], jd.Model) and names["model"].nv == 8
