//! Element types, and the one rule of promotion.

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// Truth values, one byte each.
    Bool,
    /// Unsigned bytes.
    U8,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// IEEE half precision; arithmetic is done in f32.
    F16,
    /// Brain floats, the upper half of an f32; arithmetic is done in f32.
    BF16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Complex numbers of two f32, 64 bits in all: PyTorch's and NumPy's complex64.
    C64,
    /// Complex numbers of two f64, 128 bits in all: PyTorch's and NumPy's complex128.
    C128,
}

impl DType {
    /// Floating-point types: real numbers that can carry a gradient.
    pub fn is_float(self) -> bool {
        (DType::F16..=DType::F64).contains(&self)
    }

    /// Complex types.
    pub fn is_complex(self) -> bool {
        self >= DType::C64
    }

    /// Floating-point and complex types: those that can carry a gradient.
    pub fn is_differentiable(self) -> bool {
        self >= DType::F16
    }

    /// The type of the real and the imaginary part; any type that is not complex is its own.
    ///
    /// ```
    /// use pullback::DType;
    /// assert_eq!((DType::C64.real(), DType::F64.real()), (DType::F32, DType::F64));
    /// ```
    pub fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex type that holds numbers of this type: `c128` for `f64`, and `c64` for the other real types, as promotion has it.
    ///
    /// ```
    /// use pullback::DType;
    /// assert_eq!((DType::F32.complex(), DType::F64.complex()), (DType::C64, DType::C128));
    /// ```
    pub fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Integers (not truth values).
    pub fn is_int(self) -> bool {
        matches!(self, DType::U8 | DType::I32 | DType::I64)
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The type in which values of `a` and `b` meet: the later of the two in the order
    /// `bool, u8, i32, i64, f16, bf16, f32, f64`, but `f16` and `bf16` meet in `f32`. A complex type meets others in the complex type
    /// that holds the real parts of both: `c64` and `f64` in `c128`.
    ///
    /// A Rust number never takes part: it becomes the type of the tensor it meets.
    ///
    /// ```
    /// use pullback::DType;
    /// assert_eq!(DType::promote(DType::I64, DType::F32), DType::F32);
    /// assert_eq!(DType::promote(DType::F16, DType::BF16), DType::F32);
    /// assert_eq!(DType::promote(DType::C64, DType::F64), DType::C128);
    /// ```
    pub fn promote(a: DType, b: DType) -> DType {
        match (a, b) {
            (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
            _ if a.is_complex() || b.is_complex() => DType::promote(a.real(), b.real()).complex(),
            _ => a.max(b),
        }
    }

    /// The name that is printed and parsed: `f32`, `bool`, ..
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust number, on its way into a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A float.
    F64(f64),
    /// An integer.
    I64(i64),
    /// A truth value.
    Bool(bool),
    /// A complex number.
    Complex(Complex<f64>),
}

impl Scalar {
    /// As a real number. [`fits`](Scalar::fits) and `cast` have refused complex ones before.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Scalar::F64(v) => v,
            Scalar::I64(v) => v as f64,
            Scalar::Bool(v) => v as u8 as f64,
            Scalar::Complex(v) => unreachable!("the complex number {v} was taken for a real one"),
        }
    }

    pub(crate) fn to_i64(self) -> i64 {
        match self {
            Scalar::I64(v) => v,
            Scalar::Bool(v) => v as i64,
            other => other.to_f64() as i64,
        }
    }

    pub(crate) fn to_complex(self) -> Complex<f64> {
        match self {
            Scalar::Complex(v) => v,
            other => Complex::new(other.to_f64(), 0.0),
        }
    }

    /// The type that a tensor made from this number alone has.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Scalar::F64(_) => DType::F64,
            Scalar::I64(_) => DType::I64,
            Scalar::Bool(_) => DType::Bool,
            Scalar::Complex(_) => DType::C128,
        }
    }

    /// Whether `dtype` can hold this number; a float may lose digits, an integer nothing.
    pub(crate) fn fits(self, dtype: DType) -> bool {
        let (low, high) = match dtype {
            DType::Bool => (0, 1),
            DType::U8 => (u8::MIN as i64, u8::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            _ => (i64::MIN, i64::MAX),
        };
        match self {
            _ if dtype.is_complex() => true,
            Scalar::Complex(_) => false,
            _ if dtype.is_float() => true,
            // The bounds of i64 are the only ones that f64 does not hold: the upper one rounds to 2^63, which is too large.
            Scalar::F64(v) => {
                dtype.is_int()
                    && v.fract() == 0.0
                    && v >= low as f64
                    && (v as i64) <= high
                    && v < 2f64.powi(63)
            }
            Scalar::I64(v) => (low..=high).contains(&v),
            Scalar::Bool(_) => true,
        }
    }

    /// This number as an integer of at most 32 bits: floats saturate, integers wrap.
    fn narrow<T: Copy>(self, saturated: impl Fn(f64) -> T, wrapped: impl Fn(i64) -> T) -> T {
        match self {
            Scalar::F64(v) => saturated(v),
            other => wrapped(other.to_i64()),
        }
    }
}

/// Rust types that tensors are made of. `bool` is stored as a byte of 0 or 1.
///
/// Sealed: the list is that of [`DType`].
pub trait Element: Copy + Send + Sync + 'static + private::Sealed {
    /// The tensor type with these elements.
    const DTYPE: DType;
    /// How it lies in memory.
    #[doc(hidden)]
    type Stored: Pod + Send + Sync;
    #[doc(hidden)]
    fn store(self) -> Self::Stored;
    #[doc(hidden)]
    fn load(stored: Self::Stored) -> Self;
    #[doc(hidden)]
    fn from_scalar(s: Scalar) -> Self;
    #[doc(hidden)]
    fn to_scalar(self) -> Scalar;
}

mod private {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty, $dtype:ident, $stored:ty, $store:expr, $load:expr, $from:expr, $to:expr;)*) => {$(
        impl private::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            type Stored = $stored;
            fn store(self) -> $stored { let f: fn($t) -> $stored = $store; f(self) }
            fn load(v: $stored) -> $t { let f: fn($stored) -> $t = $load; f(v) }
            fn from_scalar(s: Scalar) -> $t { let f: fn(Scalar) -> $t = $from; f(s) }
            fn to_scalar(self) -> Scalar { let f: fn($t) -> Scalar = $to; f(self) }
        }
        impl From<$t> for Scalar {
            fn from(v: $t) -> Scalar { v.to_scalar() }
        }
    )*};
}
elements! {
    bool, Bool, u8, |v| v as u8, |v| v != 0, |s| s.to_f64() != 0.0, Scalar::Bool;
    u8, U8, u8, |v| v, |v| v, |s| s.narrow(|v| v as u8, |v| v as u8), |v| Scalar::I64(v as i64);
    i32, I32, i32, |v| v, |v| v, |s| s.narrow(|v| v as i32, |v| v as i32), |v| Scalar::I64(v as i64);
    i64, I64, i64, |v| v, |v| v, |s| s.to_i64(), Scalar::I64;
    f16, F16, f16, |v| v, |v| v, |s| f16::from_f64(s.to_f64()), |v| Scalar::F64(v.to_f64());
    bf16, BF16, bf16, |v| v, |v| v, |s| bf16::from_f64(s.to_f64()), |v| Scalar::F64(v.to_f64());
    f32, F32, f32, |v| v, |v| v, |s| s.to_f64() as f32, |v| Scalar::F64(v as f64);
    f64, F64, f64, |v| v, |v| v, |s| s.to_f64(), Scalar::F64;
    Complex<f32>, C64, Complex<f32>, |v| v, |v| v, |s| single(s.to_complex()), |v| Scalar::Complex(double(v));
    Complex<f64>, C128, Complex<f64>, |v| v, |v| v, |s| s.to_complex(), Scalar::Complex;
}

fn single(v: Complex<f64>) -> Complex<f32> {
    Complex::new(v.re as f32, v.im as f32)
}

fn double(v: Complex<f32>) -> Complex<f64> {
    Complex::new(v.re.into(), v.im.into())
}

/// As messages have it.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F64(v) => v.fmt(f),
            Scalar::I64(v) => v.fmt(f),
            Scalar::Bool(v) => v.fmt(f),
            Scalar::Complex(v) => v.fmt(f),
        }
    }
}

impl From<usize> for Scalar {
    fn from(v: usize) -> Scalar {
        Scalar::I64(v as i64)
    }
}

/// Runs the body with `$T` bound to the Rust type in which elements of `$dtype` are stored.
macro_rules! with_stored {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::C64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            $crate::DType::C128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
            dtype => $crate::dtype::with_real!(dtype, $T => $body),
        }
    };
}
pub(crate) use with_stored;

/// Runs the body with `$T` bound to a type of the size of an element of `$dtype`, for what moves elements and does not ask what they
/// are: an instance for each size, and not for each type.
macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = [u64; 2];
                $body
            }
        }
    };
}
pub(crate) use with_bits;

/// Runs the body with `$T` bound to the Rust type in which elements of `$dtype` are stored; complex types do not come here.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool | $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            dtype => $crate::dtype::with_float!(dtype, $T => $body),
        }
    };
}
pub(crate) use with_real;

/// Runs the body with `$T` bound to the Rust type of the real number `$dtype`; bool and complex types do not come here.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => unreachable!("a numeric kernel was called with bool: `infer` should have refused it"),
            dtype => $crate::dtype::with_real!(dtype, $T => $body),
        }
    };
}
pub(crate) use with_number;

/// Runs the body with `$T` bound to the Rust type of the float `$dtype`; other types do not come here.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            other => unreachable!("a float kernel was called with {other}: `infer` should have refused it"),
        }
    };
}
pub(crate) use with_float;

/// Runs the body with `$T` bound to the Rust type of the parts of the complex `$dtype`; other types do not come here.
macro_rules! with_parts {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::C64 => {
                type $T = f32;
                $body
            }
            $crate::DType::C128 => {
                type $T = f64;
                $body
            }
            other => unreachable!("a complex kernel was called with {other}: `infer` should have refused it"),
        }
    };
}
pub(crate) use with_parts;
