"""Base parameters: the identifiable combinations of parameters, and the unobservable directions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grouping:
    """Base parameters: the column `base[i]` stands for `x_base[i] + sum_d combination[i, d] x_rest[d]`.

    `base` and `rest` are the positions of the independent and of the dependent columns of the regressor.
    """

    names: tuple[str, ...]
    base: np.ndarray
    rest: np.ndarray
    combination: np.ndarray
    #: condition number of the base columns, each of norm one
    condition: float

    def base_names(self) -> tuple[str, ...]:
        """The base parameters in words, such as `Ixx(link2) - 0.5 m(link3)`."""
        rest = [self.names[k] for k in self.rest]
        return tuple(_format_sum([(1.0, self.names[b]), *zip(c, rest, strict=True)]) for b, c in self._rows())

    def directions(self) -> tuple[str, ...]:
        """Directions in parameter space that change no residual, one for each parameter of `rest`."""
        texts = []
        for d, k in enumerate(self.rest):
            others = [(-c, self.names[b]) for b, c in zip(self.base, self.combination[:, d], strict=True)]
            texts.append(_format_sum([(1.0, self.names[k]), *others]))
        return tuple(texts)

    def observable(self) -> np.ndarray:
        """A mask of the individually identifiable parameters: they are part of no unobservable direction."""
        identifiable = np.zeros(len(self.names), bool)
        identifiable[self.base] = ~(np.abs(self.combination) > 0).any(axis=1)
        return identifiable

    def values(self, x: np.ndarray) -> np.ndarray:
        """The base parameters of the vector x."""
        return x[self.base] + self.combination @ x[self.rest]

    def _rows(self) -> Iterator[tuple[int, np.ndarray]]:
        return zip(self.base, self.combination, strict=True)


def _format_sum(terms: Iterable[tuple[float, str]]) -> str:
    text = ""
    for coefficient, name in terms:
        if coefficient == 0:
            continue
        size = abs(coefficient)
        number = "" if abs(size - 1) < 5e-7 else f"{size:.4g} "
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += f"{sign}{number}{name}"
    return text


def grouping(names: tuple[str, ...], hessian: np.ndarray, tolerance: float | None = None) -> Grouping:
    """Independent columns of a regressor J, in order, and the dependent ones as combinations of them.

    A column of norm one is dependent if its component orthogonal to the columns before is shorter than `tolerance`.
    If the number of independent columns differs from the numerical rank, they are selected by pivoting instead
    (Gautier and Khalil 1990). The Cholesky factorisation of the Gram matrix takes the place of a QR factorisation, so
    that samples can be accumulated in chunks.

    Arguments:

    * `names`: of the n parameters.
    * `hessian`: `J^T J`, `(n, n)`.
    * `tolerance`: by default `300 sqrt(eps)` of its precision.
    """
    hessian = np.asarray(hessian)
    tolerance = 300 * float(np.sqrt(np.finfo(hessian.dtype).eps)) if tolerance is None else float(tolerance)
    hessian = hessian.astype(float)
    length = np.sqrt(np.maximum(np.diag(hessian), 0))
    nonzero = length > tolerance * max(length.max(initial=0) * 1e-6, 1e-290)
    unit = np.where(nonzero, length, 1.0)
    gram = np.where(np.outer(nonzero, nonzero), hessian / np.outer(unit, unit), 0.0)
    rank = int(np.sum(np.linalg.eigvalsh(gram) > tolerance**2)) if len(names) else 0
    independent = _select_in_order(gram, tolerance)
    if len(independent) != rank:
        independent = _select_by_pivoting(gram, tolerance)
    base = np.array(sorted(independent), int)
    rest = np.array([k for k in range(len(names)) if k not in set(base.tolist())], int)
    inner = gram[np.ix_(base, base)]
    combination = np.linalg.solve(inner, gram[np.ix_(base, rest)]) if base.size else np.zeros((0, rest.size))
    combination[np.abs(combination) < 10 * tolerance] = 0
    combination = combination * unit[rest][None, :] / unit[base][:, None] if base.size else combination
    values = np.linalg.eigvalsh(inner) if base.size else np.ones(1)
    condition = float(np.sqrt(values[-1] / max(values[0], 1e-300)))
    return Grouping(names, base, rest, _round_coefficients(combination), condition)


def _round_coefficients(combination: np.ndarray) -> np.ndarray:
    """Coefficients, with those that are whole numbers up to rounding errors made whole."""
    whole = np.round(combination)
    return np.where(np.abs(combination - whole) < 1e-7 * np.maximum(np.abs(whole), 1), whole, combination)


def _select_in_order(gram: np.ndarray, tolerance: float) -> list[int]:
    """Columns that do not depend on the columns before them, by Cholesky's method."""
    schur, selected = gram.copy(), []
    for k in range(len(gram)):
        if schur[k, k] > tolerance**2:
            selected.append(k)
            schur = _eliminate(schur, k)
    return selected


def _eliminate(schur: np.ndarray, k: int) -> np.ndarray:
    """The Gram matrix of the components orthogonal to column k."""
    column = schur[:, k] / np.sqrt(schur[k, k])
    return schur - np.outer(column, column)


def _select_by_pivoting(gram: np.ndarray, tolerance: float) -> list[int]:
    """Columns in the order of the norms of their components orthogonal to those selected before."""
    schur, selected = gram.copy(), []
    while len(selected) < len(gram):
        squares = np.diag(schur).copy()
        squares[selected] = 0
        k = int(np.argmax(squares))
        if squares[k] <= tolerance**2:
            break
        selected.append(k)
        schur = _eliminate(schur, k)
    return selected
