"""Encoding of pytrees as JSON and arrays, and decoding."""

import dataclasses
import enum
import inspect
import math
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import FileFormatError, ModelError
from jaxdyn.io.saving import _interpolants
from jaxdyn.io.saving._former_names import PRESENT_FIELDS
from jaxdyn.io.saving._names import Names, is_class, is_enum
from jaxdyn.io.saving._place import ROOT, Place

MAX_DEPTH = 100


class Encoder:
    """Turns a tree into JSON content and a list of arrays."""

    def __init__(self, names: Names):
        self.names = names
        self.arrays: list[np.ndarray] = []

    def encode(self, value: Any, path: Place = ROOT, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise ModelError(f"{path}: nested deeper than {MAX_DEPTH}, or contains itself; save its parts")
        inside = lambda x, place: self.encode(x, place, depth + 1)
        match value:
            case complex() | np.ndarray() | np.generic() | jax.Array():
                return self._array(value, path)
            case enum.Enum():
                return {"enum": self._class(value, path), "member": value.name}
            case bool() | str() | int() | float() if type(value) not in (bool, str, int, float):
                self._refuse(value, path)
            case None | bool() | str():
                return value
            case int():
                return {"int": self._digits(value, path)}
            case float():
                return value if math.isfinite(value) else {"float": repr(value)}
            case tuple() if hasattr(value, "_fields"):
                fields = {k: inside(getattr(value, k), path.field(k)) for k in value._fields}  # pyright: ignore[reportAttributeAccessIssue]
                return {"class": self._class(value, path), "fields": fields}
            case tuple() | list():
                kind = "tuple" if type(value) is tuple else "list"
                if type(value) not in (tuple, list):
                    self._refuse(value, path)
                return {kind: [inside(x, path.item(k)) for k, x in enumerate(value)]}
            case dict():
                if type(value) is not dict:
                    self._refuse(value, path)
                return {"dict": [[inside(k, path.key_itself(k)), inside(x, path.item(k))] for k, x in value.items()]}
        if solver := _interpolants.solver_name(value):
            return {"interpolation": solver}
        if callable(value) and (inspect.isroutine(value) or hasattr(value, "__wrapped__")):
            return {"function": self._function(value, path)}
        if is_class(type(value)):
            kind: Any = type(value)
            present = [f.name for f in dataclasses.fields(kind) if _has_own_value(value, f)]
            fields = {k: inside(getattr(value, k), path.field(k)) for k in present}
            return {"class": self._class(value, path), "fields": fields}
        self._refuse(value, path)

    def _refuse(self, value: Any, path: Place):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ModelError(f"{path} is a {kind}, which cannot be saved; remove it, or replace it by an array or a number")

    def _digits(self, value: int, path: Place) -> str:
        try:
            return str(value)
        except ValueError:
            raise ModelError(f"{path} is an integer with too many digits (sys.get_int_max_str_digits)") from None

    def _class(self, value: Any, path: Place) -> str:
        name = self.names.name(type(value))
        if name is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise ModelError(
                f"{path} is a {kind}, which is not a class of jaxdyn; list it: allow=({type(value).__name__},)"
            )
        return name

    def _function(self, value: Any, path: Place) -> str:
        name = self.names.name(value)
        if name is None:
            kind = f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', '?')}"
            raise ModelError(
                f"{path} is the function {kind}, which is not a function of jaxdyn; list it, "
                f"allow=({value.__name__},), also for jaxdyn.load, or replace the part that contains it"
            )
        return name

    def _array(self, value: Any, path: Place) -> Any:
        if isinstance(value, core.Tracer):
            raise ModelError(f"{path} is traced; save trees outside jit, grad and vmap")
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            raise ModelError(f"{path} is a random key; save jax.random.key_data of it")
        kinds = {"jax": jax.Array, "numpy": np.ndarray, "scalar": np.generic, "complex": complex}
        kind = next(name for name, types in kinds.items() if isinstance(value, types))
        array = np.asarray(value)
        dtype = str(array.dtype)
        if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize in (1, 2):
            array = array.view(f"u{array.dtype.itemsize}")  # bfloat16 and float8, which npy does not support
        if array.dtype.kind not in "biufc":
            raise ModelError(f"{path} is an array of {dtype}; only arrays of numbers can be saved")
        self.arrays.append(np.ascontiguousarray(array).reshape(array.shape))
        return {
            "array": len(self.arrays) - 1,
            "kind": kind,
            "dtype": dtype,
            "weak": bool(getattr(value, "weak_type", False)),
        }


class Decoder:
    """Turns JSON content and arrays into the tree."""

    def __init__(self, names: Names, arrays: list[np.ndarray], source: str):
        self.names, self.arrays, self.source = names, arrays, source

    def fail(self, path: Place, problem: str) -> NoReturn:
        raise FileFormatError(f"{self.source}, {path}: {problem}")

    def decode(self, node: Any, path: Place = ROOT, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            self.fail(path, f"nested deeper than {MAX_DEPTH}")
        if node is None or isinstance(node, bool | str | float):
            return node
        if not isinstance(node, dict):
            self.fail(path, f"contains a bare {type(node).__name__}; save the tree again")
        inside = lambda x, place: self.decode(x, place, depth + 1)
        match node:
            case {"int": str(text), **rest} if not rest:
                return self._number(int, text, path)
            case {"float": ("nan" | "inf" | "-inf") as text, **rest} if not rest:
                return float(text)
            case {"array": int(k), "kind": str(kind), "dtype": str(dtype), "weak": bool(weak), **rest} if not rest:
                return self._array(k, kind, dtype, weak, path)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(inside(x, path.item(k)) for k, x in enumerate(items))
            case {"list": list(items), **rest} if not rest:
                return [inside(x, path.item(k)) for k, x in enumerate(items)]
            case {"dict": list(items), **rest} if not rest:
                return self._dict(items, path, inside)
            case {"enum": str(name), "member": str(member), **rest} if not rest:
                return self._member(name, member, path)
            case {"interpolation": str(name), **rest} if not rest:
                kind = _interpolants.find_interpolation(name)
                if kind is None:
                    self.fail(path, f"names the solver {name[:120]!r}, which is unknown here; update diffrax")
                return kind
            case {"function": str(name), **rest} if not rest:
                return self._function(name, path)
            case {"class": str(name), "fields": dict(fields), **rest} if not rest:
                return self._instance(name, {k: inside(x, path.field(k)) for k, x in fields.items()}, path)
        self.fail(path, f"contains an unknown node with the keys {sorted(node)[:4]}; save the tree again")

    def _number(self, kind, text: str, path: Place):
        try:
            return kind(text)
        except ValueError:
            self.fail(path, f"contains {text[:40]!r}, not a number")

    def _dict(self, items: list, path: Place, inside) -> dict:
        out = {}
        for item in items:
            if not (isinstance(item, list) and len(item) == 2):
                self.fail(path, "contains a dictionary that is not a list of pairs")
            key = inside(item[0], path.key_itself(len(out)))
            value = inside(item[1], path.item(key))
            try:
                is_known = bool(key in out)
                out[key] = value
            except (TypeError, ValueError, AttributeError):  # of the class of the key, which compares and hashes it
                self.fail(path, f"contains a dictionary with a {type(key).__name__} for a key")
            if is_known:
                self.fail(path.item(key), "occurs twice; save the tree again")
        return out

    def _array(self, k: int, kind: str, dtype: str, weak: bool, path: Place):
        if not 0 <= k < len(self.arrays) or isinstance(k, bool):
            self.fail(path, f"refers to array {k}, but the file has {len(self.arrays)} arrays")
        array = self.arrays[k]
        if str(array.dtype) != dtype:
            array = self._reinterpret(array, dtype, path)
        if kind == "scalar" and array.shape == ():
            return array[()]
        if kind == "complex" and array.shape == ():
            return complex(array)
        if kind == "jax":
            return self._jax_array(array, weak and array.shape == () and dtype != "bool", path)
        if kind != "numpy":
            self.fail(path, f"is an array of the unknown kind {kind!r}")
        return array

    def _jax_array(self, array: np.ndarray, is_weak: bool, path: Place) -> jax.Array:
        try:
            return jnp.asarray(array.item() if is_weak else array)
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(path, f"is an array of {array.dtype} that JAX does not support ({error})")

    def _reinterpret(self, array: np.ndarray, dtype: str, path: Place) -> np.ndarray:
        known = {str(np.dtype(x)): np.dtype(x) for x in (jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2)}
        if dtype not in known or array.dtype != np.dtype(f"u{known[dtype].itemsize}"):
            self.fail(path, f"has an array of {array.dtype} where one of {dtype[:40]} was saved")
        return array.view(known[dtype])

    def _function(self, name: str, path: Place):
        value = self.names.find(name)
        if value is None or is_class(value) or is_enum(value) or not callable(value):
            self.fail(
                path,
                f"names the function {name[:120]!r}, which is not one of jaxdyn; list it: allow=(that_function,)",
            )
        return value

    def _member(self, name: str, member: str, path: Place) -> Any:
        cls: Any = self.names.find(name)
        if not is_enum(cls) or member not in cls.__members__:
            self.fail(
                path,
                f"names {member[:60]!r} of {name[:120]!r}, which is not an enumeration of jaxdyn; list it in allow",
            )
        return cls[member]

    def _instance(self, name: str, fields: dict[str, Any], path: Place) -> Any:
        cls: Any = self.names.find(name)
        if not is_class(cls):
            self.fail(
                path, f"names the class {name[:120]!r}, which is not a class of jaxdyn; list it: allow=(ThatClass,)"
            )
        if not dataclasses.is_dataclass(cls):
            fields = self._rename_former(fields, cls)
            if set(fields) != set(cls._fields):
                self.fail(path, f"has the fields {sorted(fields)} for a {name}, expected {sorted(cls._fields)}")
            return cls(**fields)
        expected = {f.name: f for f in dataclasses.fields(cls)}
        fields = self._rename_former(fields, cls)
        missing = [k for k, f in expected.items() if k not in fields and _default(f) is dataclasses.MISSING]
        if missing or fields.keys() - expected.keys() or inspect.isabstract(cls):
            self.fail(
                path, f"has the fields {sorted(fields)} for a {name}, expected {sorted(expected)}; save the tree again"
            )
        values = {
            key: fields[key] if key in fields else _default(f) for key, f in expected.items() if key in fields or f.init
        }
        try:
            return _fill_instance(cls, values)
        except (TypeError, AttributeError):  # classes with another layout than a dataclass
            self.fail(path, f"names the class {name[:120]!r}, which cannot be restored from its fields")

    def _rename_former(self, fields: dict[str, Any], cls: Any) -> dict[str, Any]:
        """The fields of a class, with former names replaced by the present ones."""
        present = PRESENT_FIELDS.get(self.names.name(cls) or "", {})
        return {present.get(name, name): value for name, value in fields.items()}


def _has_own_value(value: Any, f: dataclasses.Field) -> bool:
    """True if an instance has its own value of a field, and not only the default of its class."""
    return hasattr(value, f.name) and (f.init or f.name in vars(value))


def _fill_instance(cls: Any, values: dict[str, Any]) -> Any:
    """An instance with these values of fields, created without a call of the class."""
    instance: Any = object.__new__(cls)
    for key, value in values.items():
        object.__setattr__(instance, key, value)
    return instance


def _default(f: dataclasses.Field) -> Any:
    if f.default_factory is not dataclasses.MISSING:
        return f.default_factory()
    return f.default
