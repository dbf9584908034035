import numpy as np
import torch
import torch.nn.functional as F
import common
from common import record, write


def normal(*shape):
    """Numbers of few digits, which are moved and not computed with."""
    return torch.round(common.normal(*shape) * 64) / 64


def i(*values):
    return torch.tensor(values)


def of_numpy(name, f, x, **options):
    """What NumPy gives, with the gradient of moving elements: the seeds of the elements that each one has become."""
    places = torch.arange(x.numel()).reshape(x.shape)
    y, came_from = torch.tensor(f(x.numpy())), torch.tensor(f(places.numpy()))
    seeds = torch.cos(torch.arange(y.numel(), dtype=torch.float64))
    g = torch.zeros(x.numel()).index_add(0, came_from.reshape(-1), seeds).reshape(x.shape)
    record(name, lambda _: y, x, gradients=[g], **options)


x = normal(2, 3, 4)
record("flatten_axes", lambda x: x.flatten(1, 2), x, start=1, end=-1)
record("swap_axes", lambda x: x.swapaxes(0, 2), x, a=0, b=-1)
record("move_axis", lambda x: torch.movedim(x, 0, 2), x, to=2)
record("move_axis", lambda x: torch.movedim(x, 0, 1), x, to=1)
for shift in [1, -2, 7]:
    record("roll", lambda x: torch.roll(x, shift, 1), x, shift=shift, axis=1)
record("tile", lambda x: torch.tile(x, (2, 3)), normal(2), times=[2, 3])
record("tile", lambda x: torch.tile(x, (2,)), normal(2, 2), times=[2])
record("repeat_interleave", lambda x: torch.repeat_interleave(x, 2, 1), x, times=[2], axis=1)
record("repeat_interleave", lambda x: torch.repeat_interleave(x, i(0, 2, 1), 1), x, times=[0, 2, 1], axis=1)
record("flip", lambda x: torch.flip(x, (0, 2)), x, axes=[0, 2])
record("rot90", lambda x: torch.rot90(x, 1, (0, 2)), x, times=1, a=0, b=2)
record("rot90", lambda x: torch.rot90(x, 3, (0, 1)), x, times=-1, a=0, b=1)
record("chunk", lambda x: torch.chunk(x, 3, 0)[-1], normal(7, 2), n=3, axis=0)
for k in [-3, -1, 0, 2]:
    record("diagonal", lambda x: torch.diagonal(x, k, 0, 2), x, offset=k, a=0, b=2)
    record("tril", lambda x: torch.tril(x, k), x, offset=k)
    record("triu", lambda x: torch.triu(x, k), x, offset=k)
    record("diag_embed", lambda x: torch.diag_embed(x, k), normal(2, 2), offset=k)
record("diag", lambda x: torch.diag(x, -1), normal(3), offset=-1)
record("diag", lambda x: torch.diag(x, 1), normal(3, 2), offset=1)
for size, step in [(3, 1), (2, 2), (2, 3)]:
    record("unfold", lambda x: x.unfold(1, size, step), normal(2, 5), axis=1, size=size, step=step)
record("unfold", lambda x: x.unfold(0, 2, 1), normal(3, 2), axis=0, size=2, step=1)
record("fold", lambda x: F.fold(x, (1, 6), (1, 3), stride=(1, 2)).reshape(6), normal(3, 2), step=2, length=6)
for mode, name in [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]:
    record("pad", lambda x: F.pad(x, (2, 1, 1, 0), mode)[0], normal(1, 1, 2, 3), mode=name, widths=[0, 0, 1, 0, 2, 1])
for mode in ["reflect", "symmetric", "edge", "wrap"]:
    for widths in [((0, 0), (2, 1)), ((3, 2), (7, 8)), ((1, 1), (0, 4))]:
        flat = [w for pair in widths for w in pair]
        of_numpy("pad", lambda x: np.pad(x, widths, mode), normal(2, 3), mode=mode, widths=flat)
of_numpy("pad", lambda x: np.pad(x, (3, 2), "reflect"), normal(1), mode="reflect", widths=[3, 2])
record("eye", lambda: torch.eye(3, 2), n=3, m=2)
record("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij")[0], normal(2), normal(3), k=0)
record("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij")[1], normal(2), normal(3), k=1)
record("hstack", lambda x, y: torch.hstack((x, y)), normal(2, 1), normal(2, 2))
record("hstack", lambda x, y: torch.hstack((x, y)), normal(2), normal(1))
record("vstack", lambda x, y: torch.vstack((x, y)), normal(2), normal(3, 2))

record("take", lambda x, k: x[:, k], x, torch.tensor([[0, 2], [-1, 1]]), axis=1)
record("take_along_axis", lambda x, k: torch.take_along_dim(x, k % 3, 1), x, torch.tensor([[[-1], [0]]]), axis=1)
record("embedding", lambda w, k: F.embedding(k, w), normal(4, 3), torch.tensor([[0, 3], [3, 1]]))
record("put", lambda x, k, v: torch.put(x, k, v), normal(2, 3), torch.tensor([5, 0, -2]), normal(3))
record("scatter", lambda x, k, v: torch.scatter(x, 1, k, v), normal(3, 4), torch.tensor([[0, 2], [3, 1]]), normal(2, 2), axis=1)
for rule, name in [("prod", "scatter_mul"), ("amax", "scatter_max"), ("amin", "scatter_min")]:
    f = lambda x, k, v: torch.scatter_reduce(x, 0, k, v, rule)
    record(name, f, normal(3, 2), torch.tensor([[0, 2], [2, 2], [0, 1], [0, 2]]), normal(4, 2), axis=0)
    ties = torch.tensor([1.0, 2.0, 2.0, 2.0, 1.0])
    record(name, f, torch.tensor([1.0, 2.0]), torch.tensor([0, 1, 0, 1, 0]), ties, axis=0)
record("scatter_mul", lambda x, k, v: torch.scatter_reduce(x, 0, k, v, "prod"), normal(2), i(0, 0, 1, 1), torch.tensor([0.0, 2.0, 0.0, 0.0]), axis=0)
mask = torch.tensor([[True, False, True], [False, False, True]])
record("masked_select", lambda x, m: torch.masked_select(x, m), normal(2, 3), mask)
record("masked_select", lambda x, m: torch.masked_select(x, m), normal(3), mask)
record("compress", lambda x, m: x[:, m], normal(2, 3), torch.tensor([True, False, True]), axis=1)
record("nonzero", lambda x: torch.nonzero(x), torch.tensor([[0.0, 2.0], [3.0, 0.0]]), gradients=[None])
record("one_hot", lambda k: F.one_hot(k, 4).to(torch.float64), torch.tensor([[0, 3], [2, 1]]), n=4)

# Advanced indexing, as NumPy has it; `index` says which case it is.
a, b = np.array([[0, 1], [1, 1]]), np.array([2, -1])
m = np.array([[True, False, True], [False, True, True]])
x = normal(2, 3, 4)
for k, f in enumerate([
    lambda x: x[a],
    lambda x: x[:, b],
    lambda x: x[..., b],
    lambda x: x[a, b],
    lambda x: x[a, :, b],
    lambda x: x[0, :, b],
    lambda x: x[:, 1, b],
    lambda x: x[1:, b, 0],
    lambda x: x[:, None, a[0], b],
    lambda x: x[a[0], None, b],
    lambda x: x[:, ::-2, b],
    lambda x: x[m],
    lambda x: x[m, 1:3],
    lambda x: x[:, np.array([True, False, True])],
    lambda x: x[np.array([True, False]), ..., b],
    lambda x: x[:, a, ..., b],
]):
    of_numpy("index", f, x, index=k)

# Updates of the same; PyTorch's in-place forms.
for k, at in enumerate([(slice(None), i(2, 0)), (i(0, 1, 1), i(2, -1, 0)), (torch.tensor(m),), (0, slice(1, None))]):
    shape = x[at].shape

    def put(x, v, accumulate):
        y = x.clone()
        if accumulate:
            y[at] += v
        else:
            y[at] = v
        return y

    record("set", lambda x, v: put(x, v, False), x, normal(*shape), index=k)
    record("add", lambda x, v: put(x, v, True), x, normal(*shape), index=k)
write("indexing")
