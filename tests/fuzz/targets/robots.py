"""Robot descriptions: URDF and MJCF texts."""

import random
from collections.abc import Sequence

import jaxdyn as jd
from jaxdyn.io import ParsingLimits
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_text
from tests.fuzz.target import MAX_BYTES, Target
from tests.io._random_urdf import random_case

_LIMITS = ParsingLimits(max_bytes=MAX_BYTES, max_elements=2_000, max_links=200)
_MJCF = (
    """<mujoco><default><geom density="500"/></default><worldbody>
  <body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" range="-90 90" damping="0.1"/><geom size=".1"/>
    <body><joint name="s" type="slide" axis="1 0 0"/>
    <geom type="box" size=".1 .2 .3" mass="1"/><site name="tip"/></body>
  </body><body><freejoint/><geom type="capsule" size=".1 .2"/></body></worldbody>
  <tendon><fixed name="t"><joint joint="h" coef="1"/><joint joint="s" coef="2"/></fixed></tendon>
  <equality><tendon tendon1="t" polycoef="0.1 0 0 0 0"/><joint joint1="h" joint2="s"/></equality>
  <actuator><motor joint="h" gear="10" ctrlrange="-1 1"/></actuator></mujoco>""",
    """<mujoco><worldbody><replicate count="3" offset="1 0 0"><body><joint type="ball"/><inertial pos="0 0 0" mass="1"
  diaginertia="1 1 1"/></body></replicate></worldbody>
  <keyframe><key qpos="1 0 0 0 1 0 0 0 1 0 0 0"/></keyframe></mujoco>""",
)


def _urdf_seeds() -> list[bytes]:
    texts = (random_case(seed) for seed in range(60))
    return [text.encode() for text, oddity in texts if oddity is None]


def _mjcf_seeds() -> list[bytes]:
    return [text.encode() for text in _MJCF]


def _new_robot(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    return random_case(rng.randrange(2**31))[0].encode()


def _read_urdf(content: bytes):
    return jd.parse_urdf(content, bounds=_LIMITS)


def _read_mjcf(content: bytes):
    return jd.parse_mjcf(content.decode("utf-8", "replace"), bounds=_LIMITS)


TARGETS = [
    Target("urdf", _urdf_seeds, _read_urdf, any_of(mutate_text, mutate_text, mutate_bytes, _new_robot)),
    Target("mjcf", _mjcf_seeds, _read_mjcf, any_of(mutate_text, mutate_bytes)),
]
