//! Operators that follow from others, written once for all number types of this module.

/// The operators and conversions of [`Real`](super::Real) that a type gets from its arithmetic with
/// itself and with `f64`, its comparison of values, and `Real` itself.
macro_rules! derived_operators {
    ([$($generics:tt)*] $Type:ty) => {
        derived_operators! { @assign [$($generics)*] $Type, AddAssign add_assign Add add }
        derived_operators! { @assign [$($generics)*] $Type, SubAssign sub_assign Sub sub }
        derived_operators! { @assign [$($generics)*] $Type, MulAssign mul_assign Mul mul }
        derived_operators! { @assign [$($generics)*] $Type, DivAssign div_assign Div div }
        derived_operators! { @assign [$($generics)*] $Type, RemAssign rem_assign Rem rem }

        impl<$($generics)*> std::ops::Rem for $Type {
            type Output = Self;
            #[inline]
            fn rem(self, other: Self) -> Self {
                pullback_table::Number::rem(self, other)
            }
        }
        impl<$($generics)*> std::ops::Rem<f64> for $Type {
            type Output = Self;
            #[inline]
            fn rem(self, other: f64) -> Self {
                pullback_table::Number::rem(self, <$Type as super::Real>::constant(other))
            }
        }
        impl<$($generics)*> std::ops::Add<$Type> for f64 {
            type Output = $Type;
            #[inline(always)]
            fn add(self, other: $Type) -> $Type {
                other + self
            }
        }
        impl<$($generics)*> std::ops::Sub<$Type> for f64 {
            type Output = $Type;
            #[inline(always)]
            fn sub(self, other: $Type) -> $Type {
                -other + self
            }
        }
        impl<$($generics)*> std::ops::Mul<$Type> for f64 {
            type Output = $Type;
            #[inline(always)]
            fn mul(self, other: $Type) -> $Type {
                other * self
            }
        }
        impl<$($generics)*> std::ops::Div<$Type> for f64 {
            type Output = $Type;
            #[inline(always)]
            fn div(self, other: $Type) -> $Type {
                <$Type as super::Real>::constant(self) / other
            }
        }
        impl<$($generics)*> From<f64> for $Type {
            #[inline(always)]
            fn from(value: f64) -> Self {
                <$Type as super::Real>::constant(value)
            }
        }
        impl<$($generics)*> Default for $Type {
            #[inline(always)]
            fn default() -> Self {
                <$Type as super::Real>::constant(0.0)
            }
        }
        impl<$($generics)*> std::iter::Sum for $Type {
            #[inline]
            fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
                // Not a fold: in its closure the compiler can leave a call for the thread's tape, for each record.
                let mut sum = Self::default();
                for x in terms {
                    sum += x;
                }
                sum
            }
        }
        impl<'a, $($generics)*> std::iter::Sum<&'a $Type> for $Type {
            #[inline]
            fn sum<I: Iterator<Item = &'a $Type>>(terms: I) -> Self {
                terms.copied().sum()
            }
        }
        impl<$($generics)*> std::iter::Product for $Type {
            #[inline]
            fn product<I: Iterator<Item = Self>>(factors: I) -> Self {
                let mut product = Self::from(1.0);
                for x in factors {
                    product *= x;
                }
                product
            }
        }
        impl<'a, $($generics)*> std::iter::Product<&'a $Type> for $Type {
            #[inline]
            fn product<I: Iterator<Item = &'a $Type>>(factors: I) -> Self {
                factors.copied().product()
            }
        }
    };
    (@assign [$($generics:tt)*] $Type:ty, $Assign:ident $assign:ident $Op:ident $op:ident) => {
        impl<$($generics)*> std::ops::$Assign for $Type {
            #[inline(always)]
            fn $assign(&mut self, other: Self) {
                *self = std::ops::$Op::$op(*self, other);
            }
        }
        impl<$($generics)*> std::ops::$Assign<f64> for $Type {
            #[inline(always)]
            fn $assign(&mut self, other: f64) {
                *self = std::ops::$Op::$op(*self, other);
            }
        }
    };
}
pub(crate) use derived_operators;

/// Equality and order by the field that holds the value.
macro_rules! compared_by_value {
    ([$($generics:tt)*] $Type:ty, $($field:tt)+) => {
        impl<$($generics)*> PartialEq for $Type {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.$($field)+ == other.$($field)+
            }
        }
        impl<$($generics)*> PartialEq<f64> for $Type {
            #[inline(always)]
            fn eq(&self, other: &f64) -> bool {
                self.$($field)+ == *other
            }
        }
        impl<$($generics)*> PartialOrd for $Type {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.$($field)+.partial_cmp(&other.$($field)+)
            }
            // One machine comparison each, where the default would go through `partial_cmp`.
            #[inline(always)]
            fn lt(&self, other: &Self) -> bool {
                self.$($field)+ < other.$($field)+
            }
            #[inline(always)]
            fn le(&self, other: &Self) -> bool {
                self.$($field)+ <= other.$($field)+
            }
            #[inline(always)]
            fn gt(&self, other: &Self) -> bool {
                self.$($field)+ > other.$($field)+
            }
            #[inline(always)]
            fn ge(&self, other: &Self) -> bool {
                self.$($field)+ >= other.$($field)+
            }
        }
        impl<$($generics)*> PartialOrd<f64> for $Type {
            #[inline(always)]
            fn partial_cmp(&self, other: &f64) -> Option<std::cmp::Ordering> {
                self.$($field)+.partial_cmp(other)
            }
            #[inline(always)]
            fn lt(&self, other: &f64) -> bool {
                self.$($field)+ < *other
            }
            #[inline(always)]
            fn le(&self, other: &f64) -> bool {
                self.$($field)+ <= *other
            }
            #[inline(always)]
            fn gt(&self, other: &f64) -> bool {
                self.$($field)+ > *other
            }
            #[inline(always)]
            fn ge(&self, other: &f64) -> bool {
                self.$($field)+ >= *other
            }
        }
        impl<$($generics)*> std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.$($field)+, f)
            }
        }
    };
}
pub(crate) use compared_by_value;
