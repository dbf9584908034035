//! The static parameters of operations as data: how graphs print, parse and compare them.

use super::{Accumulation, BitOperation, Connective, Relation, SliceSpec};
use crate::DType;
use crate::error::{Result, err};
use crate::kernels::movement::put::PutRule;
use crate::shape::{Axes, Shape};
use std::fmt;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attr {
    Number(f64),
    Word(String),
    List(Vec<Attr>),
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Number(v) => write!(f, "{v}"),
            Attr::Word(w) => f.write_str(w),
            Attr::List(items) => {
                f.write_str("[")?;
                for (k, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if k > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// A type of parameter.
pub(crate) trait Attribute: Sized {
    fn to_attr(&self) -> Attr;
    fn from_attr(attr: &Attr) -> Option<Self>;
}

impl Attribute for f64 {
    fn to_attr(&self) -> Attr {
        Attr::Number(*self)
    }
    fn from_attr(attr: &Attr) -> Option<f64> {
        match attr {
            Attr::Number(v) => Some(*v),
            _ => None,
        }
    }
}

macro_rules! integers {
    ($($T:ty)*) => {$(
        impl Attribute for $T {
            fn to_attr(&self) -> Attr {
                Attr::Number(*self as f64)
            }
            /// Whole numbers that a float holds exactly: no shape or index is larger.
            fn from_attr(attr: &Attr) -> Option<$T> {
                match attr {
                    Attr::Number(v) if v.abs() < 9e15 && (*v as $T) as f64 == *v => Some(*v as $T),
                    _ => None,
                }
            }
        }
    )*};
}
integers!(usize isize);

/// A number, or its upper and lower half where no float holds it.
impl Attribute for i64 {
    fn to_attr(&self) -> Attr {
        match *self as f64 as i128 == *self as i128 {
            true => Attr::Number(*self as f64),
            false => {
                Attr::List(vec![((*self >> 32) as isize).to_attr(), ((*self as u32) as usize).to_attr()])
            }
        }
    }
    fn from_attr(attr: &Attr) -> Option<i64> {
        match attr {
            Attr::Number(v) if (*v as i64) as i128 as f64 == *v => Some(*v as i64),
            Attr::List(halves) if halves.len() == 2 => {
                let (upper, lower) = (isize::from_attr(&halves[0])?, usize::from_attr(&halves[1])?);
                Some((i32::try_from(upper).ok()? as i64) << 32 | u32::try_from(lower).ok()? as i64)
            }
            _ => None,
        }
    }
}

/// Parameters that are one word of several.
macro_rules! words {
    ($($T:ty: $($word:literal = $value:expr),+;)*) => {$(
        impl Attribute for $T {
            fn to_attr(&self) -> Attr {
                $(if *self == $value {
                    return Attr::Word($word.into());
                })+
                unreachable!("every value has a word")
            }
            fn from_attr(attr: &Attr) -> Option<$T> {
                match attr {
                    $(Attr::Word(w) if w == $word => Some($value),)+
                    _ => None,
                }
            }
        }
    )*};
}
words! {
    bool: "true" = true, "false" = false;
    Relation: "eq" = Relation::Eq, "ne" = Relation::Ne, "lt" = Relation::Lt, "le" = Relation::Le, "gt" = Relation::Gt, "ge" = Relation::Ge;
    BitOperation: "and" = BitOperation::And, "or" = BitOperation::Or, "xor" = BitOperation::Xor, "left" = BitOperation::Left,
        "right" = BitOperation::Right;
    PutRule: "set" = PutRule::Set, "mul" = PutRule::Mul, "max" = PutRule::Max, "min" = PutRule::Min;
    Connective: "and" = Connective::And, "or" = Connective::Or, "xor" = Connective::Xor;
    Accumulation: "sum" = Accumulation::Sum, "product" = Accumulation::Product, "logsumexp" = Accumulation::LogSumExp;
    DType: "bool" = DType::Bool, "u8" = DType::U8, "i32" = DType::I32, "i64" = DType::I64, "f16" = DType::F16,
        "bf16" = DType::BF16, "f32" = DType::F32, "f64" = DType::F64,
        "c64" = DType::C64, "c128" = DType::C128;
}

fn list<T: Attribute, C: FromIterator<T>>(attr: &Attr) -> Option<C> {
    match attr {
        Attr::List(items) => items.iter().map(T::from_attr).collect(),
        _ => None,
    }
}

impl Attribute for Axes {
    fn to_attr(&self) -> Attr {
        Attr::List(self.iter().map(usize::to_attr).collect())
    }
    fn from_attr(attr: &Attr) -> Option<Axes> {
        list(attr)
    }
}

impl Attribute for Shape {
    fn to_attr(&self) -> Attr {
        Attr::List(self.iter().map(usize::to_attr).collect())
    }
    fn from_attr(attr: &Attr) -> Option<Shape> {
        list(attr)
    }
}

/// Start, step and length of each axis.
impl Attribute for (usize, isize, usize) {
    fn to_attr(&self) -> Attr {
        Attr::List(vec![self.0.to_attr(), self.1.to_attr(), self.2.to_attr()])
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        match attr {
            Attr::List(items) if items.len() == 3 => Some((
                usize::from_attr(&items[0])?,
                isize::from_attr(&items[1])?,
                usize::from_attr(&items[2])?,
            )),
            _ => None,
        }
    }
}

impl Attribute for SliceSpec {
    fn to_attr(&self) -> Attr {
        Attr::List(self.axes.iter().map(Attribute::to_attr).collect())
    }
    fn from_attr(attr: &Attr) -> Option<SliceSpec> {
        Some(SliceSpec { axes: list::<_, Vec<_>>(attr)?.into() })
    }
}

/// The named parameters of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attrs(pub Vec<(String, Attr)>);

impl Attrs {
    pub fn put(&mut self, name: &str, value: &impl Attribute) {
        self.0.push((name.to_string(), value.to_attr()));
    }

    /// Takes a parameter out.
    pub fn take<T: Attribute>(&mut self, name: &str) -> Result<T> {
        let Some(k) = self.0.iter().position(|(n, _)| n == name) else {
            return Err(err!(Format, "the parameter `{name}` is missing"));
        };
        let (_, attr) = self.0.remove(k);
        T::from_attr(&attr).ok_or_else(|| err!(Format, "`{attr}` is no value for the parameter `{name}`"))
    }

    /// An error if something is left over.
    pub fn finish(self) -> Result<()> {
        match self.0.first() {
            Some((name, _)) => Err(err!(Format, "there is no parameter `{name}`")),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, (name, attr)) in self.0.iter().enumerate() {
            write!(f, "{}{name}: {attr}", if k > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
