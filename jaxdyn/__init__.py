"""jaxdyn: differentiable multibody dynamics in JAX."""
