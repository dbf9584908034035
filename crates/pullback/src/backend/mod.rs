//! Where the numbers are: kernels that know nothing of derivatives.

pub(crate) mod cpu;
