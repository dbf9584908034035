"""Complex numbers: holomorphic functions, and others."""
import torch
from common import complex_normal, normal, record, uniform, write

z = complex_normal(5)
w = complex_normal(5)
m = complex_normal(2, 3)
for name in ["neg", "square", "exp", "sin", "cos", "sinh", "cosh", "log", "sqrt", "reciprocal", "abs", "angle", "conj"]:
    record(name, lambda x, f=getattr(torch, name): f(x).resolve_conj(), z)
for name in ["real", "imag"]:
    record(name, getattr(torch, name), z)
for name in ["add", "sub", "mul", "div"]:
    record(name, getattr(torch, name), z, w)
record("complex", torch.complex, normal(4), normal(4))
record("polar", torch.polar, uniform(0.5, 2.0, 4), normal(4))
# Types that meet: a real leaf in a complex computation gets a real gradient.
record("mul", torch.mul, normal(2, 1), m)
record("div", torch.div, m, uniform(0.5, 2.0, 3))
record("sum", lambda x: x.sum(1), m, axis=1)
record("mean", lambda x: x.mean(0), m, axis=0)
record("matmul", torch.matmul, m, complex_normal(3, 2))
record("matmul", torch.matmul, complex_normal(2, 2, 3), complex_normal(2, 3, 1))
record("matmul", lambda a, b: a.to(torch.complex128) @ b, normal(2, 3), complex_normal(3, 2))
record("where", lambda a, b: torch.where(a.real > 0, a, b), z, w)
record("index_select", lambda x, i: x.index_select(1, i), m, torch.tensor([2, 0, 2]))
record("gather", lambda x, i: x.gather(1, i), m, torch.tensor([[0, 2], [1, 1]]))
record("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), m, torch.tensor([[0, 2], [1, 1]]), complex_normal(2, 2))
# Real functions of complex numbers, by several operations.
record("power", lambda x: (x * x.conj()).real, z)
record("fidelity", lambda a, b: (a.conj() * b).sum().abs() ** 2, z, w)
record("unwrapped", lambda x: torch.log(x * x).imag, z)
# The kinks.
origin = torch.tensor([0j, 1 + 0j, -1 + 0j])
record("abs", torch.abs, origin)
record("angle", torch.angle, origin)
write("complex")
