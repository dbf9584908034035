import torch
import torch.nn.functional as F
from common import normal, record, uniform, write

# Sums of products.
for spec, *shapes in [
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("ij,jk", (2, 3), (3, 2)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->ji", (2, 2, 3)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
    ("...i->...", (2, 3, 2)),
    ("i,j,k->kji", (2,), (3,), (2,)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 2), (2, 3), (3, 2)),
    ("ijk,ilm,njm,nlk,abc->", (2, 2, 2), (2, 3, 2), (2, 2, 2), (2, 3, 2), (2, 1, 2)),
    ("bA,Bb->AB", (2, 3), (2, 2)),
]:
    record("einsum", lambda *x: torch.einsum(spec, *x), *[normal(*s) for s in shapes], spec=spec)
record("tensordot", lambda a, b: torch.tensordot(a, b, dims=([2, 0], [0, 1])), normal(2, 3, 4), normal(4, 2, 3))
record("kron", torch.kron, normal(2, 3), normal(3, 2))
record("kron", torch.kron, normal(3), normal(2, 2))
record("cross", lambda a, b: torch.linalg.cross(a, b, dim=0), normal(3, 2), normal(3, 2), axis=0)
record("inner", torch.inner, normal(2, 3), normal(4, 3))
record("bilinear", lambda x, z, w: F.bilinear(x, z, w), normal(2, 3), normal(2, 2), normal(4, 3, 2))

# Normalisation.
record("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), normal(2, 3, 4), normal(4), normal(4))
record("layer_norm", lambda x, w, b: F.layer_norm(x, (3, 2), w, b), normal(2, 3, 2), normal(3, 2), normal(3, 2))
record("layer_norm", lambda x: F.layer_norm(x, (3,)), normal(2, 3))
record("rms_norm", lambda x, w: F.rms_norm(x, (4,), w, 1e-5), normal(3, 4), normal(4))
record("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), normal(2, 4, 3), normal(4), normal(4), groups=2)
record("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), normal(2, 3, 4), normal(3), normal(3))
for shape in [(4, 3), (3, 2, 2, 2)]:
    c = shape[1]
    record("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), normal(*shape), normal(c), normal(c))
record("batch_norm_with", lambda x, m, v, w, b: (x - m[:, None]) / torch.sqrt(v[:, None] + 1e-5) * w[:, None] + b[:, None],
       normal(2, 3, 2), normal(3), uniform(0.5, 2, 3), normal(3), normal(3))

# Attention.
attend = F.scaled_dot_product_attention
for name, options, shapes in [
    ("plain", {}, [(2, 3, 4), (2, 5, 4), (2, 5, 3)]),
    ("causal", {"is_causal": True}, [(2, 4, 2), (2, 4, 2), (2, 4, 2)]),
    ("scaled", {"scale": 0.3}, [(1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)]),
]:
    record("attention", lambda q, k, v: attend(q, k, v, **options), *[normal(*s) for s in shapes], kind=name)
record("attention", lambda q, k, v, m: attend(q, k, v, m), normal(2, 3, 2), normal(2, 4, 2), normal(2, 4, 2), normal(3, 4), kind="added")
kept = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, False]])
record("attention", lambda q, k, v, m: attend(q, k, v, m), normal(2, 3, 2), normal(2, 4, 2), normal(2, 4, 2), kept, kind="kept")
record("attention", lambda q, k, v: attend(q, k, v, enable_gqa=True), normal(1, 4, 2, 3), normal(1, 2, 3, 3), normal(1, 2, 3, 3), kind="grouped")

# Losses.
labels, some = torch.tensor([0, 3, 1]), torch.tensor([2, -100, 0])
# PyTorch has no gradient with respect to weights of classes.
weights = torch.tensor([1, 3, 2, 1])
for reduction in ["none", "mean", "sum"]:
    record("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction=reduction), normal(3, 4), labels, reduction=reduction)
    record("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w.double(), reduction=reduction, ignore_index=-100, label_smoothing=0.2),
           normal(3, 4), some, weights, reduction=reduction, smoothing=0.2, ignore=-100)
    record("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=0.1),
           normal(3, 4), labels, reduction=reduction, smoothing=0.1)
    record("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=0.1),
           normal(3, 4), torch.softmax(normal(3, 4), -1), reduction=reduction, smoothing=0.1)
    record("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w.double(), reduction=reduction),
           normal(3, 4), torch.softmax(normal(3, 4), -1), weights, reduction=reduction)
bce = F.binary_cross_entropy_with_logits
record("binary_cross_entropy", lambda x, t: bce(x, t, reduction="none"), normal(2, 3) * 10, uniform(0, 1, 2, 3))
record("binary_cross_entropy", lambda x, t, w: bce(x, t, pos_weight=w.double(), reduction="none"), normal(2, 3) * 10, uniform(0, 1, 2, 3), torch.tensor([1, 2, 3]))
write("fused")
