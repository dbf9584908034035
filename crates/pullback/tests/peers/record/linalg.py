import torch
import torch.linalg as la
from common import normal, record, write


def regular(*shape):
    """Far from singular, with values apart, whose rows change places."""
    k = min(shape[-2:])
    diagonal = torch.diag_embed(torch.arange(1.0, k + 1).expand(*shape[:-2], k))
    full = torch.zeros(*shape)
    full[..., :k, :k] = diagonal
    return (full + 0.4 * normal(*shape)).roll(1, -2)


def symmetric(a):
    return (a + a.mT) / 2


def definite(*shape):
    a = normal(*shape)
    return a @ a.mT + shape[-1] * torch.eye(shape[-1])


for a, b in [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((2, 1, 2, 2), (3, 2, 1))]:
    record("solve", la.solve, regular(*a), normal(*b))
for upper in [False, True]:
    for unit in [False, True]:
        for transposed in [False, True]:
            record(
                "solve_triangular",
                lambda a, b: la.solve_triangular(a.mT if transposed else a, b, upper=upper != transposed, unitriangular=unit),
                (lambda a: a.triu() if upper else a.tril())(definite(3, 3)), normal(3, 2), upper=upper, unit=unit, transposed=transposed)
for shape in [(3, 3), (2, 2, 2), (1, 1)]:
    record("inv", la.inv, regular(*shape))
    record("det", la.det, regular(*shape))
    record("slogdet_sign", lambda a: la.slogdet(a)[0], regular(*shape))
    record("slogdet", lambda a: la.slogdet(a)[1], regular(*shape))
    record("logdet", torch.logdet, definite(*shape))
    record("cholesky", lambda a: la.cholesky(symmetric(a)), definite(*shape))
    record("eigvalsh", lambda a: la.eigvalsh(symmetric(a)), regular(*shape))
    record("matrix_exp", la.matrix_exp, normal(*shape))
    record("trace", lambda a: a.diagonal(dim1=-2, dim2=-1).sum(-1), normal(*shape))
    for k in [0, 1, 5, -3]:
        record("matrix_power", lambda a: la.matrix_power(a, k), regular(*shape) / 2, tolerance=1e-11, k=k)
record("matrix_exp", la.matrix_exp, 8 * normal(4, 4), tolerance=1e-11)
record("matrix_exp", la.matrix_exp, 0.001 * normal(4, 4))
# PyTorch has a gradient above the diagonal too, which it does not read.
record("cholesky_solve", lambda b, l: torch.cholesky_solve(b, l.tril()), normal(3, 2), la.cholesky(definite(3, 3)))
for shape in [(3, 3), (4, 2), (2, 2, 4)]:
    k = min(shape[-2:])
    record("lu_l", lambda a: la.lu(a)[1], regular(*shape))
    record("lu_u", lambda a: la.lu(a)[2], regular(*shape))
    record("lu_p", lambda a: la.lu(a)[0], regular(*shape), gradients=[None])
    # The signs of rows of R are free.
    record("qr_r", lambda a: la.qr(a)[1].abs(), regular(*shape))
    record("qr_q", lambda a: la.qr(a)[0].square(), regular(*shape))
    record("svdvals", la.svdvals, regular(*shape))
    record("svd_polar", lambda a: (lambda u, s, vh: u @ vh)(*la.svd(a, full_matrices=False)), regular(*shape))
    record("svd_first", lambda a: (lambda u, s, vh: u[..., :, :1] @ vh[..., :1, :])(*la.svd(a, full_matrices=False)), regular(*shape))
    record("pinv", la.pinv, regular(*shape))
    record("matrix_rank", la.matrix_rank, regular(*shape), gradients=[None])
    for kind in ["fro", "nuc", "1", "2", "inf"]:
        order = {"fro": "fro", "nuc": "nuc", "1": 1, "2": 2, "inf": torch.inf}[kind]
        record("matrix_norm", lambda a: la.matrix_norm(a, order), regular(*shape), kind=kind)
for a, b in [((4, 2), (4, 1)), ((3, 3), (3, 2)), ((2, 4, 3), (2, 4, 2))]:
    record("lstsq", lambda a, b: la.lstsq(a, b).solution, regular(*a), normal(*b), tolerance=1e-11)
for a, b in [((2, 4), (2, 1)), ((2, 3, 5), (2, 3, 2))]:
    record("lstsq", lambda a, b: la.pinv(a) @ b, regular(*a), normal(*b), tolerance=1e-11)
for shape in [(3, 3), (2, 4, 4)]:
    record("eigh_upper", lambda a: (lambda v: v[..., 1:] @ v[..., 1:].mT)(la.eigh(symmetric(a))[1]), regular(*shape))
    record("eigh_squares", lambda a: la.eigh(symmetric(a))[1].square(), regular(*shape))
record("multi_dot", lambda a, b, c: la.multi_dot([a, b, c]), normal(2, 5), normal(5, 3), normal(3, 4))
record("multi_dot", lambda a, b, c: la.multi_dot([a, b, c]), normal(5), normal(5, 3), normal(3))
write("linalg")
