"""What a command says on the terminal: aligned text, checks that can fail, and a progress bar."""

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

WIDTH = 78


class Report:
    """Prints above a progress bar, and remembers whether every check held."""

    def __init__(self, steps: int):
        self.bar = tqdm(
            total=steps,
            unit="step",
            ncols=WIDTH,
            file=sys.stderr,
            leave=False,
            disable=not sys.stderr.isatty(),
        )
        self.done, self.doing = 0, ""
        self.failures: list[str] = []

    @property
    def passed(self) -> bool:
        """Whether no check has failed."""
        return not self.failures

    def close(self):
        """Ends the progress bar."""
        self.bar.close()

    def advance(self, doing: str):
        """Begins the step `doing`; what is not a terminal gets a line where a bar cannot move."""
        if self.bar.disable and doing != self.doing:
            print(f"[{self.done / self.bar.total:4.0%}] {doing}", file=sys.stderr, flush=True)
        self.doing = doing
        self.bar.set_description(doing, refresh=False)
        self.bar.update(min(self.done, 1))
        self.bar.refresh()
        self.done += 1

    def text(self, line: str = ""):
        """One line."""
        with tqdm.external_write_mode(file=sys.stdout):
            print(line, flush=True)

    def section(self, title: str):
        """A heading."""
        self.text()
        self.text(title)
        self.text("-" * len(title))

    def row(self, label: str, value: str):
        """A labelled value."""
        self.text(f"  {label:<42} {value}")

    def table(self, header: Iterable[str], rows: Iterable[Iterable[str]]):
        """Columns aligned to the right, the first one to the left."""
        lines = [list(header), *(list(row) for row in rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        for first, *others in lines:
            cells = [first.ljust(widths[0]), *(x.rjust(w) for x, w in zip(others, widths[1:], strict=True))]
            self.text("  " + "   ".join(cells))

    def check(self, what: str, value: float, bound: float):
        """A figure that must not exceed `bound`."""
        good = bool(np.isfinite(value)) and value <= bound
        self.row(what, f"{value:.1e}   {'ok' if good else 'FAILED'}, at most {bound:.0e}")
        if not good:
            self.failures.append(what)


def timed(fun: Callable, *args) -> tuple[Any, float]:
    """Result of a call and its seconds."""
    start = time.perf_counter()
    out = jax.block_until_ready(fun(*args))
    return out, time.perf_counter() - start


def compiled(fun: Callable, *args) -> tuple[Any, float]:
    """`fun` compiled for arguments like these, and the seconds that it took."""
    start = time.perf_counter()
    out = jax.jit(fun).lower(*args).compile()
    return out, time.perf_counter() - start
