import torch
from common import normal, record, write


def coo(rows, columns, values, shape):
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape)


rows, columns = torch.tensor([2, 0, 1, 0, 2, 2]), torch.tensor([1, 3, 0, 0, 1, 2])
shape = (3, 4)
record("matmul", lambda r, c, v, x: torch.sparse.mm(coo(r, c, v, shape), x), rows, columns, normal(6), normal(4, 2), rows=3, columns=4)
record("transposed", lambda r, c, v, x: torch.sparse.mm(coo(r, c, v, shape).t(), x), rows, columns, normal(6), normal(3, 2), rows=3, columns=4)
record("vector", lambda r, c, v, x: torch.mv(coo(r, c, v, shape), x), rows, columns, normal(6), normal(4), rows=3, columns=4)
record("to_dense", lambda r, c, v: coo(r, c, v, shape).to_dense(), rows, columns, normal(6), rows=3, columns=4)
record("coalesced", lambda r, c, v: coo(r, c, v, shape).coalesce().values(), rows, columns, normal(6), rows=3, columns=4)
starts, inner = torch.tensor([0, 2, 3, 5]), torch.tensor([0, 3, 0, 1, 2])
record("csr", lambda s, c, v, x: torch.sparse_csr_tensor(s, c, v, shape) @ x, starts, inner, normal(5), normal(4, 3), rows=3, columns=4)
# Values at the places of a sparse matrix, and products at those places.
r, c = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 3, 0, 1, 2])
record("sampled", lambda r, c, a, b: (a @ b.t())[r, c], r, c, normal(3, 5), normal(4, 5), rows=3, columns=4)
write("sparse")
