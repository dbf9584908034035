"""Calls functions of PyTorch (or SciPy) and writes what they gave, with gradients, as JSON.

Needs torch, numpy and scipy. `python record/FAMILY.py` writes `cases/FAMILY.json`; numbers are drawn from a fixed seed.
"""
import json
import math
import pathlib
import torch

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(0)
cases = []


def normal(*shape):
    return torch.randn(*shape, generator=generator)


def uniform(low, high, *shape):
    return low + (high - low) * torch.rand(*shape, generator=generator)


def number(x):
    return x if math.isfinite(x) else str(x)


def complex_normal(*shape):
    return torch.complex(normal(*shape), normal(*shape))


def written(t):
    """Complex numbers are written as their real and imaginary parts, in turn."""
    names = {torch.float64: "f64", torch.complex128: "c128", torch.int64: "i64", torch.bool: "bool"}
    t = t.detach().resolve_conj()
    parts = torch.view_as_real(t) if t.is_complex() else t
    data = [number(x) for x in parts.to(torch.float64).reshape(-1).tolist()]
    return {"dtype": names[t.dtype], "shape": list(t.shape), "data": data}


def seed(y):
    angles = torch.arange(y.numel(), dtype=torch.float64)
    s = torch.polar(torch.ones_like(angles), angles) if y.is_complex() else torch.cos(angles)
    return s.reshape(y.shape)


def differentiable(t):
    return t.is_floating_point() or t.is_complex()


def record(name, f, *inputs, tolerance=1e-12, gradients=None, **options):
    """Records `f(*inputs)`, a tensor, and the gradients with respect to all float and complex inputs by autograd.

    Where f is no function of PyTorch, `gradients` are given, or `[None, ..]` where there are none. `options` are the other arguments, for whoever reads the case. `tolerance` is
    relative to the largest number.
    """
    leaves = [x.detach().clone() for x in inputs]
    active = [x for x in leaves if differentiable(x)]
    if gradients is None:
        for x in active:
            x.requires_grad_()
    y = f(*leaves)
    if gradients is None:
        if differentiable(y) and y.requires_grad:
            y.backward(seed(y))
        gradients = [x.grad for x in leaves]
    cases.append({
        "name": name,
        "options": options,
        "inputs": [written(x) for x in leaves],
        "output": written(y),
        "gradients": [None if g is None else written(g) for g in gradients],
        "tolerance": tolerance,
    })


def write(family):
    path = pathlib.Path(__file__).parent.parent / "cases" / f"{family}.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text(f'{{"torch":"{torch.__version__}","cases":[\n{lines}\n]}}\n')
    print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")
