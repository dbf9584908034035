//! Inputs that operations are tested with.

#[cfg(test)]
use super::Arg;
use super::Op;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::{Key, Tensor};
pub(crate) use pullback_table::Domain;

/// One input of a sample.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Float(Domain, Shape),
    /// Complex numbers of absolute values from 0.5 to 1.5, and angles up to 2 from the positive numbers: away from 0, and from where
    /// logarithms and roots jump.
    Complex(Shape),
    /// Integers below a bound.
    Index(usize, Shape),
    /// Truth values.
    Mask(Shape),
    /// Whole numbers of a float type, no two of them equal: far from ties with each other, and with a fractional domain.
    Distinct(Shape),
    /// Matrices that are far from all that are singular, or have equal eigen- or singular values: diagonals with a little more. The
    /// diagonal lies so many rows lower.
    #[cfg(feature = "linalg")]
    Matrix(usize, Shape),
}

impl Draw {
    pub fn new(domain: Domain, shape: &[usize]) -> Draw {
        Draw::Float(domain, shape.into())
    }

    /// What [`Draw::Matrix`] draws around: the numbers 1, 2, .. on the diagonal of each matrix.
    #[cfg(feature = "linalg")]
    pub fn diagonals(shift: usize, shape: &[usize]) -> Tensor {
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let element = |k: usize| {
            let (row, column) = (k / columns % rows, k % columns);
            if row == (column + shift) % rows { 1.0 + column as f64 } else { 0.0 }
        };
        let elements: Vec<f64> = (0..shape.iter().product()).map(element).collect();
        Tensor::from_slice(&elements, shape)
    }

    pub fn complex(shape: &[usize]) -> Draw {
        Draw::Complex(shape.into())
    }

    /// A tensor of this kind; floats and the parts of complex numbers have type `dtype`.
    pub fn tensor(&self, key: impl Into<Key>, dtype: DType) -> Tensor {
        let key = key.into();
        let [sign, size] = key.split();
        match self {
            Draw::Index(n, shape) => Tensor::randint(key, shape, 0, *n as i64),
            Draw::Mask(shape) => Tensor::bernoulli(key, shape, 0.5),
            Draw::Distinct(shape) => {
                let n = shape.numel();
                (Tensor::permutation(key, n).cast(dtype) - (n / 2) as f64).reshape(shape)
            }
            #[cfg(feature = "linalg")]
            Draw::Matrix(shift, shape) => {
                let more = Tensor::uniform(size, shape, DType::F64) * 0.3 - 0.15;
                (Draw::diagonals(*shift, shape) + more).cast(dtype)
            }
            Draw::Complex(shape) => {
                let [abs, angle] = [size, sign].map(|key| Tensor::uniform(key, shape, DType::F64));
                Tensor::polar(abs + 0.5, angle * 4.0 - 2.0).cast(dtype.complex())
            }
            Draw::Float(domain, shape) => {
                let u = Tensor::uniform(size, shape, DType::F64);
                let x = match domain {
                    Domain::any => u * 3.0 - 1.5,
                    Domain::nonzero => (u * 1.2 + 0.3) * signs(sign, shape),
                    Domain::dividend => (u * 0.3 + 2.3) * signs(sign, shape),
                    Domain::divisor => u * 0.16 + 0.92,
                    Domain::positive => u * 1.5 + 0.3,
                    Domain::unit => u * 1.6 - 0.8,
                    Domain::fractional => {
                        u * 0.6 + 0.2 + Tensor::randint(sign, shape, -2, 3).cast(DType::F64)
                    }
                    Domain::above_one => u * 1.5 + 1.2,
                    Domain::probability => u * 0.8 + 0.1,
                    Domain::order => u * 0.6 + 0.2 + Tensor::randint(sign, shape, 0, 3).cast(DType::F64),
                };
                x.cast(dtype)
            }
        }
    }
}

/// Ones of either sign.
fn signs(key: Key, shape: &Shape) -> Tensor {
    Tensor::where_(&Tensor::bernoulli(key, shape, 0.5), 1.0, -1.0)
}

/// An operation, and the inputs to test it with.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub op: Op,
    pub inputs: Vec<Draw>,
}

impl Sample {
    pub fn new(op: impl Into<Op>, inputs: impl Into<Vec<Draw>>) -> Sample {
        Sample { op: op.into(), inputs: inputs.into() }
    }

    /// The same with complex numbers for the floats, if there are some and the operation takes that.
    #[cfg(test)]
    pub fn complex(&self) -> Option<Sample> {
        let drawn = |d: &Draw| match d {
            Draw::Float(_, shape) => (Draw::Complex(shape.clone()), DType::C128, shape.clone()),
            Draw::Complex(shape) => (d.clone(), DType::C128, shape.clone()),
            Draw::Index(_, shape) => (d.clone(), DType::I64, shape.clone()),
            Draw::Mask(shape) => (d.clone(), DType::Bool, shape.clone()),
            Draw::Distinct(shape) => (d.clone(), DType::F64, shape.clone()),
            #[cfg(feature = "linalg")]
            Draw::Matrix(_, shape) => (d.clone(), DType::F64, shape.clone()),
        };
        if !self.inputs.iter().any(|d| matches!(d, Draw::Float(..))) {
            return None;
        }
        let all: Vec<(Draw, DType, Shape)> = self.inputs.iter().map(drawn).collect();
        let types: Vec<Arg> = all.iter().map(|(_, dtype, shape)| Arg { dtype: *dtype, shape }).collect();
        self.op.infer(&types).ok()?;
        let inputs = all.iter().map(|(draw, ..)| draw.clone()).collect();
        Some(Sample { op: self.op.clone(), inputs })
    }
}
