"""Draws the pictures of docs/pictures.md, and those of docs/quickstart.md from the code of that page.

    python benchmarks/pictures.py [--folder docs/img]

The picture of the report needs the browser Chromium.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdyn as jd

PAGE = Path(__file__).parents[1] / "docs" / "quickstart.md"


def draw_robots(folder: Path):
    """Writes three pictures."""
    model = jd.robots.double_pendulum()
    fall = jd.simulate(model, jnp.array([1.5, 0.2]), jnp.zeros(2), jnp.linspace(0.0, 2.0, 101))
    jd.viz.draw(model, fall.q[::20], folder / "pictures_double_pendulum.png")
    jd.viz.animate(fall, folder / "pictures_fall.gif", speed=0.5, trace=["tip"], dpi=60)
    pose = jnp.array([0.6, 0.3, 0.0, -1.8, 0.0, 2.0, 0.8])
    jd.viz.draw(jd.robots.panda(), pose, folder / "pictures_panda.png", view=(-50.0, 20.0))


def run_quickstart(folder: Path):
    """Runs the code of the page and copies its pictures."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    folder, home = folder.resolve(), Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            exec(compile(code, str(PAGE), "exec"), {"__name__": "quickstart"})
            shutil.copy("arm.png", folder / "quickstart_arm.png")
            shutil.copy("falls.gif", folder / "quickstart_falls.gif")
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,900"]
            page = Path("report.html").resolve().as_uri()
            shot = f"--screenshot={folder / 'quickstart_fit.png'}"
            subprocess.run(["chromium", *flags, shot, page], check=True, capture_output=True)
        finally:
            os.chdir(home)


def main():
    """Writes all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("docs/img"))
    folder = parser.parse_args().folder
    jax.config.update("jax_enable_x64", True)
    draw_robots(folder)
    run_quickstart(folder)


if __name__ == "__main__":
    main()
