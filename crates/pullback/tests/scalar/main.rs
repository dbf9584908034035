//! The scalar side: functions on numbers, their tapes, dual numbers, recorded functions and sparse derivatives.

mod functions;
mod laws;
mod nested;
mod programs;
mod sparse;
mod tape;
mod tape_misuse;
