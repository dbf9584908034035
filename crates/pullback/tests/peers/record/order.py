import numpy as np
import torch
from common import normal, record, write

inf, nan = float("inf"), float("nan")
some = [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 2), 1)]

for shape, axis in some:
    x = normal(*shape)
    for name in ["cumsum", "cumprod", "logcumsumexp"]:
        record(name, lambda x: getattr(torch, name)(x, axis), x, axis=axis)
    for name in ["cummax", "cummin"]:
        record(name, lambda x: getattr(torch, name)(x, axis).values, x, axis=axis)
    for descending in [False, True]:
        by = dict(dim=axis, descending=descending, stable=True)
        record("sort", lambda x: torch.sort(x, **by).values, x, axis=axis, descending=descending)
        record("argsort", lambda x: torch.sort(x, **by).indices, x, gradients=[None], axis=axis, descending=descending)
    for largest in [True, False]:
        by = dict(k=2, dim=axis, largest=largest)
        record("topk", lambda x: torch.topk(x, **by).values, x, k=2, axis=axis, largest=largest)
        record("topk_order", lambda x: torch.topk(x, **by).indices, x, gradients=[None], k=2, axis=axis, largest=largest)
    record("kthvalue", lambda x: torch.kthvalue(x, 2, axis).values, x, k=2, axis=axis)
    for p in [0.0, 0.5, 1.0, 2.0, 3.0, -1.0, inf, -inf]:
        record("p_norm", lambda x: torch.linalg.vector_norm(x, p, axis), x, p=str(p), axis=axis)
    for correction in [0, 1, 2]:
        record("var", lambda x: torch.var(x, axis, correction=correction), x, correction=correction, axis=axis)
        record("std", lambda x: torch.std(x, axis, correction=correction), x, correction=correction, axis=axis)
    for between in ["linear", "lower", "higher", "nearest", "midpoint"]:
        for q in [0.3, 0.5] if len(shape) < 3 else []:
            record("quantile", lambda x: torch.quantile(x, q, axis, interpolation=between), x, q=q, axis=axis, between=between)
    record("count_nonzero", lambda x: torch.count_nonzero(x.round(), axis), x.round(), gradients=[None], axis=axis)
    record("argmax", lambda x: x.argmax(), x, gradients=[None])
    record("argmin", lambda x: x.argmin(), x, gradients=[None])

# Zeros among factors, equal elements, infinities and NaN.
x = torch.tensor([[2.0, 0.0, 3.0, 0.0, 5.0], [0.0, -1.0, 2.0, 4.0, 0.5], [1.0, 2.0, 0.0, -3.0, 1.5]])
for axis in [0, 1]:
    record("cumprod", lambda x: torch.cumprod(x, axis), x, axis=axis)
x = torch.tensor([2.0, 1.0, 2.0, 3.0, 1.0, 3.0, -0.0, 0.0])
record("sort", lambda x: torch.sort(x, stable=True).values, x, axis=0, descending=False)
record("argsort", lambda x: torch.sort(x, stable=True).indices, x, gradients=[None], axis=0, descending=False)
record("argsort", lambda x: torch.sort(x, stable=True, descending=True).indices, x, gradients=[None], axis=0, descending=True)
for name in ["cummax", "cummin"]:
    record(name, lambda x: getattr(torch, name)(x, 0).values, x, axis=0)
x = torch.tensor([1.0, nan, -inf, inf, 0.0, nan, 2.0])
record("argsort", lambda x: torch.sort(x, stable=True).indices, x, gradients=[None], axis=0, descending=False)
record("argsort", lambda x: torch.sort(x, stable=True, descending=True).indices, x, gradients=[None], axis=0, descending=True)
record("cummax", lambda x: torch.cummax(x, 0).values, x, gradients=[None], axis=0)
record("cummin", lambda x: torch.cummin(x, 0).values, x, gradients=[None], axis=0)
record("quantile", lambda x: torch.quantile(x, 0.5, 0), x, gradients=[None], q=0.5, axis=0, between="linear")
x = torch.tensor([-inf, -inf, inf, 1.0, 2.0])
record("quantile", lambda x: torch.quantile(x, 0.4, 0), x, gradients=[None], q=0.4, axis=0, between="linear")
x = torch.tensor([-inf, 1.0, -inf, 800.0, 2.0])
record("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), x, gradients=[None], axis=0)
for p in [0.0, 1.0, 2.0, 3.0, inf]:
    record("p_norm", lambda x: torch.linalg.vector_norm(x, p, 0), torch.zeros(3), p=str(p), axis=0)

x = normal(3, 4)
record("median", lambda x: torch.quantile(x, 0.5, 1), x, axis=1)
record("unique", lambda x: torch.unique(x), torch.tensor([3.0, 1.0, 3.0, 2.0, 1.0]), gradients=[None])
edges, values = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0]), torch.tensor([-2.0, 0.5, 0.4, 3.0, nan, 0.0])
for right in [False, True]:
    record("searchsorted", lambda e, v: torch.searchsorted(e, v, right=right), edges, values, gradients=[None, None], right=right)
    lanes, wanted = torch.sort(normal(2, 3, 4), -1).values, normal(2, 3, 5)
    record("searchsorted", lambda e, v: torch.searchsorted(e, v, right=right), lanes, wanted, gradients=[None, None], right=right)
x, bins = torch.tensor([0.1, -0.2, 1.0, 0.5, 0.6, 2.0]), torch.tensor([0.0, 0.5, 0.75, 1.0])
count = torch.from_numpy(np.histogram(x.numpy(), bins.numpy())[0])
record("histogram", lambda x, e: count, x, bins, gradients=[None, None])
record("bincount", lambda x: torch.bincount(x, minlength=5), torch.tensor([1, 0, 3, 1, 1]), gradients=[None], n=5)


def reduced(x, ids, how, n):
    # Not zeros: where the extreme of a segment is what stood there before, PyTorch counts that as another winner.
    like = x.new_full((n, *x.shape[1:]), 77.0)
    index = ids.reshape(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return like.scatter_reduce(0, index, x, how, include_self=False)


ids = torch.tensor([2, 0, 2, 1, 0, 2])
for how in ["sum", "mean", "amax", "amin"]:
    for shape in [(6,), (6, 3)]:
        record("segment_" + how, lambda x, i: reduced(x, i, how, 3), normal(*shape), ids, n=3)
    record("segment_" + how, lambda x, i: reduced(x, i, how, 3), torch.tensor([1.0, 4.0, 1.0, 2.0, 4.0, 0.0]), ids, n=3)
write("order")
