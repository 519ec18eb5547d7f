"""Time to read a robot, in a separate process without the type checker of the tests."""

import subprocess
import sys

import pytest

from tests.io._pinocchio import ROBOTS
from tests.io.test_safety import chain

MEASURED = """
import sys, time
import jaxdyn as jd
jd.parse_urdf("<robot><link name='a'/></robot>")  # what the first file of a process waits for
for path in sys.argv[1:]:
    times = []
    for _ in range(8):
        start = time.process_time()
        model = jd.load_urdf(path)
        times.append(time.process_time() - start)
    print(model.nv, 1e3 * min(times))
"""


@pytest.mark.slow
def test_forty_joints_are_read_within_50_ms(tmp_path):
    """A chain of forty joints, and a real robot with 39 joints and its meshes; best processor time of several."""
    plain = tmp_path / "chain.urdf"
    plain.write_text(chain(41))
    files = [plain, ROBOTS / "centauro_description" / "urdf" / "centauro.urdf"]
    out = subprocess.run([sys.executable, "-c", MEASURED, *map(str, files)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in out.stdout.splitlines()]
    assert [int(nv) for nv, _ in rows] == [40, 39]
    assert all(float(ms) < 50 for _, ms in rows), rows
