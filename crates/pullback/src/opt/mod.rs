//! Passes: from a graph to a better one that computes the same.

mod fuse;

pub(crate) use fuse::fuse;
