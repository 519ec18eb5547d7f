"""Batches sharded over the devices of one or several processes, with `jax.sharding` and `jax.distributed`."""

from jaxdyn.distributed._processes import initialize as initialize
from jaxdyn.distributed._sharding import device_mesh as device_mesh
from jaxdyn.distributed._sharding import gather as gather
from jaxdyn.distributed._sharding import replicate as replicate
from jaxdyn.distributed._sharding import shard as shard
from jaxdyn.distributed._sharding import shard_local as shard_local
from jaxdyn.distributed._simulate import simulate_sharded as simulate_sharded
from jaxdyn.distributed._supervision import run_supervised as run_supervised
from jaxdyn.distributed._vmap import sharded_vmap as sharded_vmap
