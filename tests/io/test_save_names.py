"""Files of earlier versions: former names of modules, classes and fields."""

import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import simulation
from jaxdyn.io.saving._former_names import PRESENT_FIELDS, PRESENT_NAMES
from jaxdyn.io.saving._names import Names, is_class
from jaxdyn.simulation.system import SampledState

#: a file that an earlier version wrote: the state of a sampled part, and a solver, by their names of then
FORMER = """
{"format": "jaxdyn tree", "version": 1, "jaxdyn": "0.1.0", "tree": {"tuple": [
    {"class": "jaxdyn.simulation._system:Held", "fields": {
        "acting": {"array": 0, "kind": "jax", "dtype": "float64", "weak": false},
        "waiting": {"tuple": []}, "start": null, "samples": {"int": "3"}, "updates": null}},
    {"class": "jaxdyn.simulation.MomentumForm", "fields": {"solver": null}},
    {"class": "jaxdyn.simulation._trajectory:Batched", "fields": {"leaves": {"tuple": []}}}
]}}
"""

ARRAY = {"array": 0, "kind": "jax", "dtype": "float64", "weak": False}


def write(path, text: str):
    content = io.BytesIO()
    np.save(content, np.arange(2.0))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("structure.json", json.dumps(json.loads(text)))
        archive.writestr("0.npy", content.getvalue())


def test_files_with_former_names_load(tmp_path):
    write(tmp_path / "old", FORMER)
    state, solver, _ = jd.load(tmp_path / "old")
    assert type(state) is SampledState and state.samples == 3 and type(solver) is simulation.CanonicalMomenta
    np.testing.assert_array_equal(state.acting, [0, 1])


def test_former_fields_load(tmp_path):
    fields = {key: {"int": str(k)} for k, key in enumerate(("c", "b0", "bN", "ranged"))}
    tree = {"class": "jaxdyn.trajopt._interior_point_program:Weights", "fields": fields}
    write(tmp_path / "old", json.dumps({"format": "jaxdyn tree", "version": 1, "tree": {"tuple": [tree, ARRAY]}}))
    (multipliers, _) = jd.load(tmp_path / "old")
    assert multipliers.bounded == 3 and multipliers.c == 0


@pytest.mark.parametrize("name", PRESENT_NAMES)
def test_every_former_name_has_a_present_class(name):
    """If this fails after a move or a renaming: add the new name to the table, and keep the former ones."""
    found = Names().find(name)
    assert is_class(found) and found is Names().find(PRESENT_NAMES[name])


@pytest.mark.parametrize("name", PRESENT_FIELDS)
def test_every_former_field_has_a_present_field(name):
    found = Names().find(name)
    fields = getattr(found, "_fields", None) or [f.name for f in dataclasses.fields(found)]
    assert set(PRESENT_FIELDS[name].values()) <= set(fields) and Names().name(found) == name


def test_classes_that_moved_within_their_folder_are_found():
    assert Names().find("jaxdyn.simulation._state:ChartedState") is Names().find("jaxdyn.simulation._state:Charted")
    assert Names().find("jaxdyn.simulation.nowhere:NoSuchClass") is None
    assert Names().find("jaxdyn.nowhere:ChartedState") is None and Names().find("jaxdyn.cli.x:Report") is None
