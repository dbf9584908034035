//! Functions that are one operation to transforms (checkpoints, compiled functions, loops, rules) mean what the plain functions do.

mod named;
mod programs;
mod random;
