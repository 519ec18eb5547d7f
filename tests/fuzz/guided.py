"""Coverage-guided fuzzing with atheris, which instruments the bytecode of jaxdyn."""

import random
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def has_atheris() -> bool:
    """True if the package atheris is installed."""
    try:
        import atheris as atheris  # pyright: ignore[reportMissingImports]
    except ImportError:
        return False
    return True


def run_guided(name: str, seconds: int, seed: int, folder: Path) -> int:
    """Fuzzes a target in a child process; returns the exit status, which is 0 without failures.

    The corpus is kept in `folder/corpus-NAME`, failing inputs in `folder`.
    """
    corpus = folder / f"corpus-{name}"
    corpus.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-seed={seed % 2**31}", "-timeout=20", "-rss_limit_mb=4096"]
    options += [f"-artifact_prefix={folder}/{name}-", "-print_final_stats=1", "-max_len=300000", str(corpus)]
    return subprocess.run([sys.executable, "-m", "tests.fuzz.guided", name, *options], cwd=_ROOT).returncode


def _serve(name: str, options: list[str]):
    """The child process."""
    import atheris  # pyright: ignore[reportMissingImports]

    with atheris.instrument_imports(include=["jaxdyn.identification.logs", "jaxdyn.io", "jaxdyn.cli"]):
        from tests.fuzz.registry import find_targets

        target = find_targets()[name]
        from tests.fuzz.running import Tally, run_inputs

        for content in target.corpus:  # imports what the reader needs
            run_inputs(target, [(0, content)], Tally())
    for k, content in enumerate(target.corpus):
        Path(options[-1], f"seed-{k}").write_bytes(content)

    def test_one(content: bytes):
        tally = run_inputs(target, [(0, content)], Tally())
        if tally.failures:
            raise AssertionError(tally.failures[0].problem)

    def mutate(content: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(content, max_size)
        return target.mutate_safely(content, rng)[:max_size]

    atheris.Setup([sys.argv[0], *options], test_one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2:])
