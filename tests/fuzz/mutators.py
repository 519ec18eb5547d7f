"""Mutators: functions `(content, rng, seeds) -> content`."""

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

_INTEGERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 10**6, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_NUMBERS = (
    *("0", "-1", "1e999", "-1e999", "nan", "inf", "1e-320", "9" * 400, "9" * 5000, "-0", "0x10", "1_0", "1e", "", "١"),
    *("4294967296", "18446744073709551616", "2147483647", "1e308", "true", "null", "0" * 200_000),
)
_TEXTS = ("", "\0", "\n", "\r", '"', "'", "\ud7ff", "é", "🦾", "\ufeff", "a" * 5000, "{", "}", "[", "]", "%s", "../x")
_NUMERALS = "0123456789+-.eE"
MAX_SIZE = 300_000


def any_of(*mutators: Callable) -> Callable[[bytes, random.Random, Sequence[bytes]], bytes]:
    """The mutator that applies one of several."""
    return lambda content, rng, seeds: rng.choice(mutators)(content, rng, seeds)


def _slice(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + int(2 ** rng.uniform(0, 12)))


def mutate_bytes(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes bits, bytes, integers of all widths and slices; splices two inputs."""
    i, j = _slice(content, rng)
    match rng.randrange(9):
        case 0 if content:
            k = rng.randrange(len(content))
            return content[:k] + bytes([content[k] ^ 1 << rng.randrange(8)]) + content[k + 1 :]
        case 1 if content:
            k = rng.randrange(len(content))
            return content[:k] + rng.randbytes(1) + content[k + 1 :]
        case 2:
            kind = rng.choice("BHIQ")
            size = struct.calcsize(kind)
            number = (rng.choice(_INTEGERS) + rng.randrange(-1, 2)) % 2 ** (8 * size)
            return content[:i] + struct.pack(rng.choice("<>") + kind, number) + content[i + size :]
        case 3:
            return content[:i]
        case 4:
            return content[:i] + content[j:]
        case 5:
            times = rng.choice((2, 2, 3, 100))
            return (content[:i] + content[i:j] * times + content[j:])[:MAX_SIZE]
        case 6:
            return content[:i] + rng.randbytes(rng.randrange(1, 40)) + content[rng.choice((i, j)) :]
        case 7:
            other = rng.choice(seeds)
            return (content[:i] + other[_slice(other, rng)[0] :])[:MAX_SIZE]
        case _:
            k, l = _slice(content, rng)
            return content[:i] + content[k:l] + content[j:]


def mutate_text(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes words and numbers; copies, swaps and removes lines and tokens."""
    text = content.decode("utf-8", "replace")
    tokens = re.split(r"(\s+|[,;:=<>\"'\[\]{}()/#])", text)
    k, l = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    match rng.randrange(6):
        case 0:
            tokens[k] = rng.choice(_NUMBERS)
        case 1:
            numbers = [i for i, token in enumerate(tokens) if token.strip(_NUMERALS) == "" and token.strip("-+.eE")]
            tokens[rng.choice(numbers or [k])] = rng.choice(_NUMBERS)
        case 2:
            tokens[k] = rng.choice(_TEXTS)
        case 3:
            tokens[k], tokens[l] = tokens[l], tokens[k]
        case 4:
            tokens[k:k] = tokens[min(k, l) : max(k, l)] * rng.choice((1, 1, 50))
        case _:
            del tokens[min(k, l) : min(max(k, l), min(k, l) + rng.choice((1, 3, 30)))]
    return "".join(tokens)[:MAX_SIZE].encode("utf-8", "replace")


def mutate_json(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes one value of a JSON text; changes its characters if it is not JSON."""
    try:
        tree = json.loads(content)
        return json.dumps(mutate_tree(tree, rng)).encode()
    except (ValueError, RecursionError):
        return mutate_text(content, rng, seeds)


def mutate_tree(tree: Any, rng: random.Random) -> Any:
    """The JSON value with one value in it replaced, removed, repeated, nested, or exchanged with another."""
    places = list(_places(tree))
    holder, key = rng.choice(places or [(None, None)])
    if holder is None:
        return hostile_value(rng)
    other, other_key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            holder[key] = hostile_value(rng)
        case 1:
            del holder[key]
        case 2 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice((1, 2, 1000))
        case 2:
            holder[rng.choice((str(key) + "x", *_TEXTS))] = holder.pop(key)
        case 3:
            for _ in range(rng.choice((1, 3, 120, 900))):
                holder[key] = rng.choice(([holder[key]], {"a": holder[key]}))
        case 4:
            value = json.loads(json.dumps(other[other_key]))
            holder[key] = value
        case _:
            if isinstance(holder[key], str):
                holder[key] = rng.choice((holder[key] + rng.choice(_TEXTS), holder[key][:-1], holder[key] * 2))
            else:
                holder[key] = hostile_value(rng)
    return tree


def _places(tree: Any):
    """Every pair of a container and a key in it."""
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key])


def hostile_value(rng: random.Random) -> Any:
    """A JSON value that a reader may not expect."""
    numbers = (0, -1, 1.5, 10**30, 10**400, -(2**63), 2**64, 1e308, float("nan"), float("inf"))
    return rng.choice((None, True, False, [], {}, [[]], {"": 0}, *_TEXTS, *numbers))
