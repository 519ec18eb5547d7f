"""The report of a running command: aligned text, checks that can fail, and a progress bar."""

import sys
from collections.abc import Iterable

import numpy as np
from tqdm import tqdm

WIDTH = 78


class Report:
    """Prints above a progress bar, and records the checks that failed."""

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
        """True if no check has failed."""
        return not self.failures

    def close(self):
        """Ends the progress bar."""
        self.bar.close()

    def advance(self, doing: str):
        """Begins the step `doing`; where the standard error is not a terminal, prints a line instead of a bar."""
        if self.bar.disable and doing != self.doing:
            print(f"[{self.done / self.bar.total:4.0%}] {doing}", file=sys.stderr, flush=True)
        self.doing = doing
        self.bar.set_description(doing, refresh=False)
        self.bar.update(min(self.done, 1))
        self.bar.refresh()
        self.done += 1

    def text(self, line: str = ""):
        """Prints one line."""
        with tqdm.external_write_mode(file=sys.stdout):
            print(line, flush=True)

    def section(self, title: str):
        """Prints a heading."""
        self.text()
        self.text(title)
        self.text("-" * len(title))

    def row(self, label: str, value: str):
        """Prints a labelled value."""
        self.text(f"  {label:<42} {value}")

    def table(self, header: Iterable[str], rows: Iterable[Iterable[str]]):
        """Prints columns: the first one aligned to the left, the others to the right."""
        lines = [list(header), *(list(row) for row in rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        for first, *others in lines:
            cells = [first.ljust(widths[0]), *(x.rjust(w) for x, w in zip(others, widths[1:], strict=True))]
            self.text("  " + "   ".join(cells))

    def check(self, label: str, value: float, bound: float):
        """Prints a figure, and records a failure unless it is finite and at most `bound`."""
        is_good = bool(np.isfinite(value)) and value <= bound
        self.row(label, f"{value:.1e}   {'ok' if is_good else 'FAILED'}, at most {bound:.0e}")
        if not is_good:
            self.failures.append(label)
