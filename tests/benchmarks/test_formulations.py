"""The benchmark of formulations counts operations, and gives rows."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks import formulations
from benchmarks._timing import Effort


def test_operations_are_counted():
    """Sums, products, loops with all their passes, and factors by their leading term; what is unknown is said."""
    count = lambda f, *x: formulations.count_flops(f, x)
    x = jax.ShapeDtypeStruct((4, 4), jnp.float64)
    assert count(lambda x: x + x, x) == 16
    assert count(lambda x: x @ x, x) == 7 * 16
    assert count(lambda x: x.T.reshape(-1)[::2], x) == 0
    assert count(lambda x: jax.lax.scan(lambda c, _: (c * c, None), x, length=5)[0], x) == 5 * 16
    assert count(jax.lax.linalg.cholesky, x) >= 4**3 // 3
    with pytest.raises(ValueError, match="'erf_inv' has no count"):
        count(jax.lax.erf_inv, x)


@pytest.mark.slow
def test_where_the_claim_holds():
    """Counted without compiling: for planar chains of 20 links, not 30; of ball joints for one, in principal axes."""
    below = lambda kind, n, name: (c := formulations.counts(kind, n))[name] < c["aba"]
    assert below("planar", 20, "closed")
    assert not below("planar", 30, "closed")
    assert below("ball", 1, "principal") and not below("ball", 1, "closed")
    assert not below("ball", 2, "principal")


def test_tables_and_verdicts():
    rows = [{"links": n, "closed counted": n**2, "aba counted": 3 * n} for n in (1, 2, 3, 4)]
    assert formulations.crossover(rows, "closed", "counted") == "up to 2 of 4 links"
    assert "up to 2 of 4 links" in formulations.verdicts(rows)
    first, last = formulations.MARKS
    page = formulations.replace_section(f"a\n{first}\nold\n{last}\nb\n", "new\n")
    assert page == f"a\n{first}\n\nnew\n\n{last}\nb\n"
    with pytest.raises(ValueError, match="no lines"):
        formulations.replace_section("a page", "new")


@pytest.mark.exhaustive
def test_rows_of_formulations():
    """The methods agree, or there is no row; figures of all."""
    rows = {kind: [formulations.measure_row(kind, n, Effort(0.0, 1)) for n in (1, 2)] for kind in ("planar", "ball")}
    for found in rows.values():
        assert all(x > 0 for r in found for x in r.values())
    assert formulations.format_sections(rows["planar"], rows["ball"]).count("| below articulated bodies |") == 2
