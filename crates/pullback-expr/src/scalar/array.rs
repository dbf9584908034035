//! Numbers in a shape.

/// A number, a vector or a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The lengths of the axes; none for a number.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub elements: Vec<f64>,
}

impl Array {
    /// A single number.
    pub fn number(v: f64) -> Array {
        Array { shape: Vec::new(), elements: vec![v] }
    }
}
