"""Writes the arrays that `files.rs` reads, with NumPy: `python record.py` in this folder."""
import numpy as np
from numpy.lib import format

x = np.arange(6).reshape(2, 3)
z = x - 1j * (x + 0.5)


def write(name, array, version=(1, 0)):
    with open(f"{name}.npy", "wb") as f:
        format.write_array(f, array, version=version)


for code in ["|b1", "|u1", "<i4", "<i8", "<f2", "<f4", "<f8"]:
    write(f"row_major_{code[1:]}", x.astype(code))
for code in [">i4", ">i8", ">f2", ">f4", ">f8"]:
    write(f"big_endian_{code[1:]}", x.astype(code))
for code in ["c8", "c16"]:
    write(f"row_major_{code}", z.astype(f"<{code}"))
    write(f"big_endian_{code}", z.astype(f">{code}"))
    write(f"fortran_order_{code}", np.asfortranarray(z.astype(f"<{code}")))
write("fortran_order", np.asfortranarray(x.astype("<f8")))
write("fortran_order_3d", np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
write("scalar", np.array(2.5))
write("vector", np.array([1.5, -2.5]))
write("empty", np.zeros((0, 3)))
write("version_2", x.astype("<f8"), (2, 0))
write("version_3", x.astype("<f8"), (3, 0))
np.savez("stored.npz", x=x.astype("<f8"), n=np.array(7), z=z.astype(">c8"))
np.savez_compressed("compressed.npz", x=np.zeros((10, 10), "<f4"), y=np.array([True, False]))
# What is refused.
write("complex_of_32", x.astype("<c32"))
write("unsigned_of_4", x.astype("<u4"))
write("records", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
