"""The order of contacts, friction groups and rows, and batched evaluation of contacts of equal structure."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import PyTree
from jaxdyn.contact.rigid._contact import Contact


class Layout(NamedTuple):
    """Static indices of the rows of several contacts: normal rows, and rows of the groups of friction."""

    #: row of the normal of each contact
    normal: np.ndarray
    #: contact of each group
    contact: np.ndarray
    #: contact of each row
    contact_of_row: np.ndarray
    #: group of each row, -1 for a normal
    group_of_row: np.ndarray
    #: rows of each group, three of them, filled with the number of all rows
    rows: np.ndarray

    @property
    def num_rows(self) -> int:
        return len(self.group_of_row)

    @property
    def num_groups(self) -> int:
        return len(self.contact)

    @property
    def num_contacts(self) -> int:
        return len(self.normal)


def contact_layout(contacts: tuple[Contact, ...]) -> Layout:
    """The layout of the rows: for each contact its normal, then its groups of friction."""
    normal, owner, rows, group_of_row, contact_of_row = [], [], [], [], []
    for i, contact in enumerate(contacts):
        normal.append(len(group_of_row))
        group_of_row.append(-1)
        contact_of_row.append(i)
        for n in contact.dimensions:
            first = len(group_of_row)
            rows.append([first + k if k < n else -1 for k in range(3)])
            group_of_row += [len(owner)] * n
            contact_of_row += [i] * n
            owner.append(i)
    as_index = lambda x: np.array(x, int)
    table = as_index(rows).reshape(-1, 3)
    table = np.where(table < 0, len(group_of_row), table)
    normal, owner, contact_of_row, group_of_row = map(as_index, (normal, owner, contact_of_row, group_of_row))
    return Layout(normal, owner, contact_of_row, group_of_row, table)


def gather_groups(layout: Layout, x):
    """The entries of the rows of each group, `(groups, 3, ...)`, filled with zeros."""
    return jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])[layout.rows]


def scatter_groups(layout: Layout, x, values):
    """The vector of rows x with the entries `(groups, 3)` or `(groups, 1)` of the groups in their rows."""
    values = jnp.broadcast_to(values, (layout.num_groups, 3))
    return x.at[layout.rows].set(values, mode="drop")


def map_contacts(f: Callable[[Contact], PyTree], contacts: tuple[Contact, ...]) -> list[PyTree]:
    """`f(contact)` for each contact; contacts of the same structure are evaluated together by `vmap`."""
    kinds: dict = {}
    nameless = [dataclasses.replace(contact, name="") for contact in contacts]
    for i, contact in enumerate(nameless):
        leaves, tree = jax.tree.flatten(contact)
        kinds.setdefault((tree, tuple(jnp.shape(x) for x in leaves)), []).append(i)
    out: list = [None] * len(contacts)
    for members in kinds.values():
        if len(members) == 1:
            out[members[0]] = f(nameless[members[0]])
            continue
        stack = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *(nameless[i] for i in members))
        values = jax.vmap(f)(stack)
        for k, i in enumerate(members):
            out[i] = jax.tree.map(lambda x, k=k: x[k], values)
    return out
