"""The benchmark of formulations counts operations, and gives rows."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks import formulations
from benchmarks._timing import Effort


def test_operations_are_counted():
    """Sums, products, loops with all their passes, and factors by their leading term."""
    count = lambda f, *x: formulations.counted(f, x)
    x = jnp.ones((4, 4))
    assert count(lambda x: x + x, x) == 16
    assert count(lambda x: x @ x, x) == 7 * 16
    assert count(lambda x: jax.lax.scan(lambda c, _: (c * c, None), x, length=5)[0], x) == 5 * 16
    assert count(jax.lax.linalg.cholesky, x) >= 4**3 // 3


@pytest.mark.slow
@pytest.mark.wide
def test_rows_of_formulations():
    """The two methods agree, or there is no row; figures of both."""
    for kind in ("planar", "ball"):
        row = formulations.row(kind, 2, Effort(0.0, 1))
        assert row["links"] == 2
        assert all(x > 0 for x in row.values())
        assert "up to" in formulations.verdict([row | {"links": 1}]) or "for none" in formulations.verdict([row])
        assert formulations.table([row]).count("\n") == 2
