//! What an index means for a tensor: which region of it, and which positions along which axes.

use super::IndexItem;
use crate::dtype::DType;
use crate::error::{Result, err};
use crate::ops::*;
use crate::shape::{Axes, Shape};
use crate::tensor::methods::{mask_positions, positions, whole};
use crate::tensor::slicing::position;
use crate::tensor::{AxisRange, Tensor, bind};

/// What an item means, in the order of the items.
enum Token {
    /// An axis of the result, of this length.
    Kept(usize),
    /// Positions on an axis of this length. The axes under a mask are one.
    Picked(usize, Picks),
    /// A position that is known when the index is written: the axis is gone already.
    Position,
    /// An ellipsis, which stands between items even where it stands for no axes.
    Between,
}

enum Picks {
    Integers(Tensor),
    Mask(Tensor),
}

impl Token {
    fn kept(&self) -> Option<usize> {
        if let Token::Kept(n) = self { Some(*n) } else { None }
    }

    fn length(&self) -> Option<usize> {
        if let Token::Kept(n) | Token::Picked(n, _) = self { Some(*n) } else { None }
    }
}

/// What an index means for a tensor: a region of it, of which some axes are picked from.
pub(super) struct Plan {
    pub region: SliceSpec,
    /// Whether the region is all of the tensor, with the same axes.
    whole: bool,
    tokens: Vec<Token>,
}

pub(super) fn plan(x: &Tensor, items: Vec<IndexItem>) -> Result<Plan> {
    let axes = |item: &IndexItem| match item {
        IndexItem::Axis(AxisRange::New) | IndexItem::Ellipsis => 0,
        IndexItem::Axis(_) => 1,
        IndexItem::Tensor(t) if t.dtype() == DType::Bool => t.rank(),
        IndexItem::Tensor(_) => 1,
    };
    let named: usize = items.iter().map(axes).sum();
    let Some(left) = x.rank().checked_sub(named) else {
        return Err(err!(
            Axis,
            "the items name {named} axes of a tensor of {}, shape {:?}",
            x.rank(),
            x.shape()
        ));
    };
    let ellipses = items.iter().filter(|i| matches!(i, IndexItem::Ellipsis)).count();
    if ellipses > 1 {
        return Err(err!(Axis, "an index has at most one ellipsis"));
    }
    let end = (ellipses == 0).then_some(IndexItem::Ellipsis);
    let (mut region, mut k, mut same, mut tokens) = (whole(x.shape()), 0, true, Vec::new());
    for item in items.into_iter().chain(end) {
        match item {
            IndexItem::Axis(AxisRange::New) => {
                same = false;
                tokens.push(Token::Kept(1));
            }
            IndexItem::Axis(AxisRange::Index(at)) => {
                same = false;
                region.axes[k] = (position(at, x.shape()[k])?, 1, 1);
                tokens.push(Token::Position);
                k += 1;
            }
            IndexItem::Axis(range) => {
                let part = range.resolve(x.shape()[k])?;
                same &= part == region.axes[k];
                region.axes[k] = part;
                tokens.push(Token::Kept(part.2));
                k += 1;
            }
            IndexItem::Ellipsis => {
                tokens.push(Token::Between);
                tokens.extend(x.shape()[k..k + left].iter().map(|&n| Token::Kept(n)));
                k += left;
            }
            IndexItem::Tensor(t) if t.dtype() == DType::Bool => {
                let covered = &x.shape()[k..k + t.rank()];
                if t.shape() != covered {
                    let (mask, all) = (t.shape(), x.shape());
                    return Err(err!(
                        Shape,
                        "a mask of shape {mask:?} does not fit shape {all:?} from axis {k} on"
                    ));
                }
                k += t.rank();
                tokens.push(Token::Picked(covered.iter().product(), Picks::Mask(t.into_owned())));
            }
            IndexItem::Tensor(t) if t.dtype().is_int() => {
                tokens.push(Token::Picked(x.shape()[k], Picks::Integers(positions(&t)?.into_owned())));
                k += 1;
            }
            IndexItem::Tensor(t) => {
                return Err(err!(
                    DType,
                    "a tensor in an index has integers or truth values, got {}; use .cast(DType::I64)",
                    t.dtype()
                ));
            }
        }
    }
    Ok(Plan { region, whole: same, tokens })
}

impl Plan {
    pub fn is_slice(&self) -> bool {
        !self.tokens.iter().any(|t| matches!(t, Token::Picked(..)))
    }

    /// The axes that are kept.
    pub fn kept(&self) -> Shape {
        self.tokens.iter().filter_map(Token::kept).collect()
    }

    /// The mask, and how many axes come before it, if the index is a mask and nothing else.
    pub fn mask(&self) -> Option<(&Tensor, usize)> {
        let picks = |t: &Token| matches!(t, Token::Picked(..));
        let mut picked = self.tokens.iter().filter(|t| picks(t));
        let before = self.tokens.iter().take_while(|t| !picks(t)).filter_map(Token::kept).count();
        match (picked.next(), picked.next()) {
            (Some(Token::Picked(_, Picks::Mask(mask))), None) if self.whole => Some((mask, before)),
            _ => None,
        }
    }

    pub fn picking(self) -> Result<Picking> {
        // Items that pick and stand side by side have their axes where they stand; otherwise these come first.
        let picks = |t: &Token| matches!(t, Token::Picked(..) | Token::Position);
        let first = self.tokens.iter().position(picks).unwrap_or(0);
        let last = self.tokens.iter().rposition(picks).unwrap_or(0);
        let side_by_side = self.tokens[first..=last].iter().all(picks);
        let at = if side_by_side { self.tokens[..first].iter().filter_map(Token::kept).count() } else { 0 };

        let axes = || self.tokens.iter().filter(|t| t.length().is_some()).enumerate();
        let with =
            |kept: bool| axes().filter(move |(_, t)| t.kept().is_some() == kept).map(|(k, _)| k).collect();
        let (kept, from): (Axes, Axes) = (with(true), with(false));
        let shape: Shape = self.tokens.iter().filter_map(Token::length).collect();

        let mut index = Vec::new();
        for token in &self.tokens {
            match token {
                Token::Picked(_, Picks::Integers(t)) => index.push(t.clone()),
                Token::Picked(_, Picks::Mask(mask)) => index.push(mask_positions(mask)?),
                _ => {}
            }
        }
        let picked = index.iter().try_fold(Shape::default(), |s, i| Shape::broadcast(&s, i.shape()))?;
        picked.checked_len()?;
        let index = index.iter().map(|i| i.try_broadcast_to(&picked)).collect::<Result<Vec<Tensor>>>()?;
        let flat = match &index[..] {
            // It is checked where it is used.
            [one] => one.clone(),
            _ => {
                let lengths = from.iter().map(|&k| shape[k]).collect();
                bind(FlatIndex { shape: lengths }, &index.iter().collect::<Vec<_>>())?
            }
        };
        let perm = kept[..at].iter().chain(&from).chain(&kept[at..]).copied().collect();
        let kept = kept.iter().map(|&k| shape[k]).collect();
        Ok(Picking { region: self.region, shape, perm, kept, at, picked, flat: flat.try_flatten()? })
    }
}

/// How elements are picked from a region: along one axis, to which all axes with positions are joined.
pub(super) struct Picking {
    pub region: SliceSpec,
    /// The region with its new axes, without the dropped ones, and with one axis for each mask.
    pub shape: Shape,
    /// The axes of that in the order in which those with positions stand side by side.
    pub perm: Axes,
    /// The lengths of the other axes, and how many of them come before those with positions.
    pub kept: Shape,
    pub at: usize,
    /// The shape of the positions, and the positions along the joined axis.
    pub picked: Shape,
    pub flat: Tensor,
}

impl Picking {
    /// The kept axes, with others at the place of the joined axis.
    pub fn with(&self, lengths: &[usize]) -> Shape {
        self.kept[..self.at].iter().chain(lengths).chain(&self.kept[self.at..]).copied().collect()
    }

    /// The shape of the result.
    pub fn result(&self) -> Result<Shape> {
        let shape = self.with(&self.picked);
        shape.checked_len()?;
        Ok(shape)
    }

    /// The region with its axes permuted, and before they are joined.
    pub fn permuted(&self) -> Shape {
        self.perm.iter().map(|&k| self.shape[k]).collect()
    }

    /// The region, with the joined axis.
    pub fn lined_up(&self, x: &Tensor) -> Result<Tensor> {
        let (permuted, joined) = (self.permuted(), self.perm.len() - self.kept.len());
        let n = permuted[self.at..self.at + joined].iter().product();
        let part = bind(Slice { region: self.region.clone() }, &[x])?.try_reshape(&self.shape)?;
        bind(Permute { perm: self.perm.clone() }, &[&part])?.try_reshape(self.with(&[n]))
    }

    pub fn get(&self, x: &Tensor) -> Result<Tensor> {
        let shape = self.result()?;
        bind(IndexSelect { axis: self.at }, &[&self.lined_up(x)?, &self.flat])?.try_reshape(shape)
    }
}

/// A tensor with a region replaced by elements in another shape.
pub(super) fn replaced(x: &Tensor, region: &SliceSpec, part: &Tensor) -> Result<Tensor> {
    if *region == whole(x.shape()) {
        return part.try_reshape(&x.node().shape);
    }
    let taken: Shape = region.axes.iter().map(|a| a.2).collect();
    bind(SliceAssign { region: region.clone() }, &[x, &part.try_reshape(taken)?])
}
