"""The code of docs/files.md runs."""

import jaxdyn as jd
from tests.io._texts import arm
from tests.pages import run_page


def test_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(arm("base", "<gazebo/>"))
    names = run_page("files")
    assert "<gazebo>" in capsys.readouterr().out
    assert isinstance(names["model"], jd.Model) and names["model"].nv == 8
