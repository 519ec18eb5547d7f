"""Rollouts: one trajectory, batches of them, and plain loops of fixed steps."""

from jaxdyn.simulation.rollout._batch import as_batched_options as as_batched_options
from jaxdyn.simulation.rollout._batch import combine_batch as combine_batch
from jaxdyn.simulation.rollout._batch import simulate_batch as simulate_batch
from jaxdyn.simulation.rollout._batch import simulate_sample as simulate_sample
from jaxdyn.simulation.rollout._batch import split_batch as split_batch
from jaxdyn.simulation.rollout._fixed_steps import integrate_fixed_steps as integrate_fixed_steps
from jaxdyn.simulation.rollout._simulate import simulate as simulate
from jaxdyn.simulation.rollout._step import step as step
