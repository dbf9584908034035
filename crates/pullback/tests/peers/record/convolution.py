import torch
import torch.nn.functional as F
import common
from common import record, write


def normal(*shape):
    """With few digits, for small files."""
    return torch.round(common.normal(*shape), decimals=2)



CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
LP = {1: F.lp_pool1d, 2: F.lp_pool2d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}


def conv(x, k, **options):
    n = len(x) - 2
    given = {"stride": [1] * n, "padding": [0] * n, "dilation": [1] * n, "groups": 1} | options
    record("conv", lambda x, k: CONV[n](x, k, **given), normal(*x), normal(*k), axes=n, **given)


conv((2, 3, 7), (4, 3, 3))
conv((1, 4, 9), (6, 2, 3), stride=[2], padding=[2], dilation=[2], groups=2)
conv((2, 2, 5, 6), (3, 2, 3, 2))
conv((2, 3, 6, 5), (4, 3, 3, 3), stride=[2, 1], padding=[1, 2])
conv((1, 4, 7, 5), (4, 1, 3, 3), padding=[1, 1], groups=4)
conv((1, 4, 7, 8), (8, 1, 3, 3), stride=[2, 2], padding=[1, 1], groups=4)
conv((2, 3, 4, 4), (5, 3, 1, 1))
conv((1, 3, 4, 4), (2, 3, 1, 1), stride=[2, 3])
conv((1, 2, 8, 9), (2, 2, 3, 3), dilation=[2, 3], padding=[2, 0])
conv((1, 2, 3, 4, 4), (2, 2, 2, 3, 2), stride=[1, 2, 1], padding=[1, 1, 0])
conv((1, 2, 3, 3), (17, 2, 2, 2))
conv((1, 18, 2, 2), (2, 18, 1, 2))
for size in [2, 3, 4]:
    record("conv_same", lambda x, k: F.conv2d(x, k, padding="same", dilation=2), normal(1, 1, 5, 6), normal(1, 1, size, size), dilation=2)


def transposed(x, k, **options):
    n = len(x) - 2
    given = {"stride": [1] * n, "padding": [0] * n, "dilation": [1] * n, "groups": 1, "output_padding": [0] * n} | options
    record("conv_transpose", lambda x, k: TRANSPOSED[n](x, k, **given), normal(*x), normal(*k), axes=n, **given)


transposed((2, 3, 4), (3, 2, 3))
transposed((1, 4, 4), (4, 2, 3), stride=[2], padding=[1], groups=2, output_padding=[1])
transposed((2, 2, 3, 4), (2, 3, 3, 2), stride=[2, 3], padding=[1, 0], output_padding=[1, 2])
transposed((1, 2, 3, 3), (2, 2, 2, 2), dilation=[2, 1], padding=[0, 1])
transposed((1, 1, 2, 3, 2), (1, 2, 2, 2, 3), stride=[2, 1, 2], padding=[0, 1, 1], output_padding=[1, 0, 1])


def pool(name, functions, x, size, tensors=None, **options):
    n = len(size)
    data = normal(*x) if tensors is None else tensors
    given = {"stride": size, "padding": [0] * n, "ceil_mode": False} | options
    record(name, lambda x: functions[n](x, size, **given), data, axes=n, size=size, **given)


pool("max_pool", MAX, (2, 3, 7), [2])
pool("max_pool", MAX, (2, 3, 7), [3], stride=[2], padding=[1], dilation=[1])
pool("max_pool", MAX, (2, 2, 6, 5), [2, 2])
pool("max_pool", MAX, (1, 2, 7, 8), [3, 2], stride=[2, 3], padding=[1, 1], dilation=[2, 1])
pool("max_pool", MAX, (1, 2, 7, 8), [2, 3], stride=[2, 2], ceil_mode=True)
pool("max_pool", MAX, (1, 1, 4, 5, 4), [2, 2, 2], stride=[1, 2, 2])
pool("max_pool", MAX, None, [2, 2], tensors=torch.tensor([[1.0, 1.0, 2.0, 0.0], [1.0, 0.0, 2.0, 2.0]])[None])
record(
    "max_pool_indices", lambda x: F.max_pool2d(x, [3, 2], stride=[2, 1], padding=[1, 1], return_indices=True)[1],
    normal(1, 2, 6, 5), size=[3, 2], stride=[2, 1], padding=[1, 1],
)
pool("avg_pool", AVG, (2, 3, 7), [2])
pool("avg_pool", AVG, (2, 2, 6, 5), [2, 3], stride=[2, 1], padding=[1, 1], count_include_pad=True)
pool("avg_pool", AVG, (2, 2, 6, 5), [2, 3], stride=[2, 1], padding=[1, 1], count_include_pad=False)
pool("avg_pool", AVG, (1, 2, 7, 8), [3, 3], stride=[2, 2], padding=[1, 1], ceil_mode=True, count_include_pad=True)
pool("avg_pool", AVG, (1, 2, 7, 8), [2, 3], stride=[2, 2], ceil_mode=True, count_include_pad=False)
pool("avg_pool", AVG, (1, 1, 4, 5, 4), [2, 2, 2], stride=[1, 2, 2])
for x, size, p in [((2, 3, 7), [2], 2.0), ((1, 2, 6, 5), [2, 3], 4.0)]:
    record("lp_pool", lambda x: LP[len(size)](x, p, size if len(size) > 1 else size[0]), normal(*x), axes=len(size), size=size, p=p)
for x, to in [((2, 3, 7), [3]), ((1, 2, 7, 5), [3, 2]), ((1, 2, 6, 4), [3, 2]), ((1, 2, 3, 4), [1, 1]), ((1, 1, 3, 5, 4), [2, 3, 3]), ((1, 1, 2, 3), [5, 4])]:
    n = len(to)
    record("adaptive_avg_pool", lambda x: ADAPTIVE_AVG[n](x, to), normal(*x), axes=n, to=to)
    data = normal(*x)
    record("adaptive_max_pool", lambda x: ADAPTIVE_MAX[n](x, to), data, axes=n, to=to)
    record("adaptive_max_pool_indices", lambda x: ADAPTIVE_MAX[n](x, to, return_indices=True)[1], data, axes=n, to=to)

for mode, x, to in [
    ("nearest", (1, 2, 5), [8]), ("nearest", (1, 2, 5, 4), [3, 7]), ("nearest", (1, 1, 2, 3, 2), [3, 5, 4]),
    ("linear", (1, 2, 5), [8]), ("linear", (1, 2, 5), [3]), ("bilinear", (1, 2, 5, 4), [3, 7]), ("bilinear", (1, 1, 4, 4), [4, 1]),
    ("trilinear", (1, 1, 2, 3, 2), [3, 5, 4]), ("bicubic", (1, 2, 5, 4), [8, 3]), ("bicubic", (1, 1, 3, 3), [7, 1]),
]:
    for corners in [False] if mode == "nearest" else [False, True]:
        options = {} if mode == "nearest" else {"align_corners": corners}
        record("interpolate", lambda x: F.interpolate(x, size=to, mode=mode, **options), normal(*x), mode=mode, to=to, corners=corners)
write("convolution")
