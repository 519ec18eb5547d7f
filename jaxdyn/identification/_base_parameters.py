"""What the logs determine: independent combinations of parameters, and directions that nothing shows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grouping:
    """A partition of parameters: column `base[i]` stands for `x_base[i] + sum_d combination[i, d] x_rest[d]`."""

    names: tuple[str, ...]
    base: np.ndarray
    rest: np.ndarray
    combination: np.ndarray
    #: ratio of the greatest to the least singular value of the base columns, each of length one
    condition: float

    def base_names(self) -> tuple[str, ...]:
        """The combinations, such as `Ixx(link2) - 0.5 m(link3)`."""
        rest = [self.names[k] for k in self.rest]
        return tuple(_sum([(1.0, self.names[b]), *zip(c, rest, strict=True)]) for b, c in self._rows())

    def directions(self) -> tuple[str, ...]:
        """Changes of parameters that no residual shows, one for each parameter of `rest`."""
        texts = []
        for d, k in enumerate(self.rest):
            moved = [(-c, self.names[b]) for b, c in zip(self.base, self.combination[:, d], strict=True)]
            texts.append(_sum([(1.0, self.names[k]), *moved]))
        return tuple(texts)

    def observable(self) -> np.ndarray:
        """Which parameters are determined by themselves: they take part in no such direction."""
        alone = np.zeros(len(self.names), bool)
        alone[self.base] = ~(np.abs(self.combination) > 0).any(axis=1)
        return alone

    def values(self, x: np.ndarray) -> np.ndarray:
        """The combinations of the vector x."""
        return x[self.base] + self.combination @ x[self.rest]

    def _rows(self):
        return zip(self.base, self.combination, strict=True)


def _sum(terms) -> str:
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
    """Independent columns of a Jacobian J with `hessian = J^T J`, in order, and the others in terms of them.

    A column is dependent if what is left of it beside the columns before, each of length one, is shorter than
    `tolerance`. The number of independent columns agrees with the rank by eigenvalues, or else the columns are taken
    by the size of what is left of them (pivoting). Gautier and Khalil 1990; by Cholesky's factors of the Gram matrix
    instead of a QR, so that samples can be added up in chunks. The default tolerance is `300 sqrt(eps)`.
    """
    hessian = np.asarray(hessian)
    tolerance = 300 * float(np.sqrt(np.finfo(hessian.dtype).eps)) if tolerance is None else float(tolerance)
    hessian = hessian.astype(float)
    length = np.sqrt(np.maximum(np.diag(hessian), 0))
    seen = length > tolerance * max(length.max(initial=0) * 1e-6, 1e-290)
    unit = np.where(seen, length, 1.0)
    gram = np.where(np.outer(seen, seen), hessian / np.outer(unit, unit), 0.0)
    rank = int(np.sum(np.linalg.eigvalsh(gram) > tolerance**2)) if len(names) else 0
    kept = _in_order(gram, tolerance)
    if len(kept) != rank:
        kept = _pivoted(gram, tolerance)
    base = np.array(sorted(kept), int)
    rest = np.array([k for k in range(len(names)) if k not in set(base.tolist())], int)
    inner = gram[np.ix_(base, base)]
    combination = np.linalg.solve(inner, gram[np.ix_(base, rest)]) if base.size else np.zeros((0, rest.size))
    combination[np.abs(combination) < 10 * tolerance] = 0
    combination = combination * unit[rest][None, :] / unit[base][:, None] if base.size else combination
    values = np.linalg.eigvalsh(inner) if base.size else np.ones(1)
    condition = float(np.sqrt(values[-1] / max(values[0], 1e-300)))
    return Grouping(names, base, rest, _rounded(combination), condition)


def _rounded(combination: np.ndarray) -> np.ndarray:
    """Coefficients that are whole numbers but for rounding are made so."""
    whole = np.round(combination)
    return np.where(np.abs(combination - whole) < 1e-7 * np.maximum(np.abs(whole), 1), whole, combination)


def _in_order(gram: np.ndarray, tolerance: float) -> list[int]:
    left, kept = gram.copy(), []
    for k in range(len(gram)):
        if left[k, k] > tolerance**2:
            kept.append(k)
            column = left[:, k] / np.sqrt(left[k, k])
            left = left - np.outer(column, column)
    return kept


def _pivoted(gram: np.ndarray, tolerance: float) -> list[int]:
    left, kept = gram.copy(), []
    while len(kept) < len(gram):
        rest = np.diag(left).copy()
        rest[kept] = 0
        k = int(np.argmax(rest))
        if rest[k] <= tolerance**2:
            break
        kept.append(k)
        column = left[:, k] / np.sqrt(left[k, k])
        left = left - np.outer(column, column)
    return kept
