//! Functions that are one operation to transforms (checkpoints, compiled functions, loops, rules) mean what the plain functions do.

mod programs;
mod random;
mod regressions;
mod solvers;
