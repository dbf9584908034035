"""Looks whether PyTorch, JAX and NumPy have the names that docs/operations.md gives them. Needs torch, jax and numpy."""
import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import jax.scipy
import numpy as np
import torch
import torch.nn.functional

page = pathlib.Path(__file__).parents[5] / "docs" / "operations.md"
modules = {"torch": torch, "jax": jax, "jnp": jnp, "np": np}
missing = []
for name in sorted(set(re.findall(r"`((?:torch|jax|jnp|np)\.[\w.]+)`", page.read_text()))):
    at = modules[name.split(".")[0]]
    for part in name.split(".")[1:]:
        at = getattr(at, part, None)
    if at is None:
        missing.append(name)
print("missing:", missing or "none")
sys.exit(bool(missing))
