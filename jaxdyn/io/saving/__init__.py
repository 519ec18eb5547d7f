"""Saving and loading of pytrees as a zip archive of JSON and npy."""

from jaxdyn.io.saving._save import load as load
from jaxdyn.io.saving._save import save as save
