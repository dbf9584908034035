//! Graph files.

use crate::failure::{Failure, Result};
use crate::model::{Model, Source};

/// The function that a graph file describes.
pub fn model(source: &Source) -> Result<Model> {
    Err(Failure::new(format!("{}: graph files cannot be read yet", source.name)))
}
