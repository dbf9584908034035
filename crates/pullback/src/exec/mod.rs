//! Running graphs.

pub(crate) mod fused;
