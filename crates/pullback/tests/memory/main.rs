//! How much memory is taken, for how long, and what happens where there is none. The counters are those of the whole process (bytes) or of a
//! thread (tensors), so the tests are in a binary of their own, and those that count take turns.

mod attention;
mod checkpoints;
mod in_place;
mod lifetimes;
mod plans;
mod refused;
