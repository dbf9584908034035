import torch
import torch.nn.functional as F
from common import normal, record, write

for shape, axis in [((4,), -1), ((2, 3), 0), ((2, 3, 2), 1)]:
    record("softmax", lambda x: F.softmax(x, axis), normal(*shape), axis=axis)
    record("log_softmax", lambda x: F.log_softmax(x, axis), normal(*shape), axis=axis)
record("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction="none"), normal(3, 4), torch.tensor([0, 3, 1]))
write("softmax")
