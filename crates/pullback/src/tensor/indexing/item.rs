//! The items of an index, and what they are made from.

use crate::shape::signed;
use crate::tensor::{AxisRange, NewAxis, Tensor};
use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One item of an index: what to take of one axis, or of several.
#[derive(Clone)]
#[non_exhaustive]
pub enum IndexItem<'a> {
    /// A range, a position or a new axis, as in a slice.
    Axis(AxisRange),
    /// All axes that no other item names.
    Ellipsis,
    /// Positions on one axis (integers), or a mask over as many axes as it has (truth values).
    Tensor(Cow<'a, Tensor>),
}

/// All axes that the other items of an index do not name.
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

/// One [`IndexItem`], a tuple of them, or a `Vec`; axes that are not named are taken whole.
pub trait IntoIndex<'a> {
    /// The items, in the order of the axes.
    fn items(self) -> Vec<IndexItem<'a>>;
}

impl<'a> IntoIndex<'a> for Vec<IndexItem<'a>> {
    fn items(self) -> Vec<IndexItem<'a>> {
        self
    }
}

/// Conversions into an item, and so into an index of the first axis.
macro_rules! items {
    ($($from:ty, $r:ident => $to:expr;)*) => {$(
        impl<'a> From<$from> for IndexItem<'a> {
            fn from($r: $from) -> Self { $to }
        }
        impl<'a> IntoIndex<'a> for $from {
            fn items(self) -> Vec<IndexItem<'a>> { vec![self.into()] }
        }
    )*};
}
macro_rules! items_of {
    ($($t:ty),*) => {$(items! {
        Range<$t>, r => IndexItem::Axis(r.into());
        RangeFrom<$t>, r => IndexItem::Axis(r.into());
        RangeTo<$t>, r => IndexItem::Axis(r.into());
        RangeInclusive<$t>, r => IndexItem::Axis(r.into());
        RangeToInclusive<$t>, r => IndexItem::Axis(r.into());
        $t, k => IndexItem::Axis(k.into());
    })*};
}
items_of!(i32, isize, usize);
items! {
    RangeFull, r => IndexItem::Axis(r.into());
    NewAxis, r => IndexItem::Axis(r.into());
    AxisRange, r => IndexItem::Axis(r);
    Ellipsis, _r => IndexItem::Ellipsis;
    Tensor, t => IndexItem::Tensor(Cow::Owned(t));
    &'a Tensor, t => IndexItem::Tensor(Cow::Borrowed(t));
}
/// Lists of positions, or of truth values.
macro_rules! lists {
    ($($t:ty, $list:ident => $to:expr;)*) => {$(
        impl<'a, const N: usize> From<[$t; N]> for IndexItem<'a> {
            fn from($list: [$t; N]) -> Self { IndexItem::Tensor(Cow::Owned($to.into())) }
        }
        impl<'a, const N: usize> IntoIndex<'a> for [$t; N] {
            fn items(self) -> Vec<IndexItem<'a>> { vec![self.into()] }
        }
    )*};
}
lists! {
    i32, list => list;
    i64, list => list;
    isize, list => list.map(|k| k as i64);
    usize, list => list.map(|k| signed(k) as i64);
    bool, list => list;
}

impl<'a> IntoIndex<'a> for IndexItem<'a> {
    fn items(self) -> Vec<IndexItem<'a>> {
        vec![self]
    }
}

macro_rules! tuples {
    ($(($($T:ident),+))*) => {$(
        impl<'a, $($T: Into<IndexItem<'a>>),+> IntoIndex<'a> for ($($T,)+) {
            #[allow(non_snake_case)]
            fn items(self) -> Vec<IndexItem<'a>> {
                let ($($T,)+) = self;
                vec![$($T.into()),+]
            }
        }
    )*};
}
tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
