//! Laws of every pass, over every operation and over random programs.
