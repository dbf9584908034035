//! The notation of `einsum`: what stands in it, and what is wrong with it.

use crate::error::{Error, Result, err};
use std::collections::BTreeMap;

/// An index: a letter, or an axis that an ellipsis stands for, counted from the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Index {
    Ellipsis(usize),
    Letter(char),
}

/// A part of the notation: letters, and at most one ellipsis, each with its place.
struct Term {
    parts: Vec<(usize, Option<char>)>,
    /// Where it begins.
    start: usize,
}

impl Term {
    fn letters(&self) -> impl Iterator<Item = (usize, char)> + '_ {
        self.parts.iter().filter_map(|&(at, part)| Some((at, part?)))
    }

    fn ellipsis(&self) -> Option<usize> {
        self.parts.iter().find(|(_, part)| part.is_none()).map(|&(at, _)| at)
    }

    /// The indices, with an ellipsis that stands for `n` axes.
    fn indices(&self, n: usize) -> Vec<Index> {
        let part = |&(_, part): &(usize, Option<char>)| match part {
            Some(letter) => vec![Index::Letter(letter)],
            None => (0..n).rev().map(Index::Ellipsis).collect(),
        };
        self.parts.iter().flat_map(part).collect()
    }
}

/// What a notation says of operands of given shapes.
#[derive(Debug)]
pub(super) struct Meaning {
    /// The index of each axis of each operand.
    pub operands: Vec<Vec<Index>>,
    pub output: Vec<Index>,
    pub lengths: BTreeMap<Index, usize>,
}

/// An error that shows the place.
fn at(spec: &str, place: usize, message: impl std::fmt::Display) -> Error {
    let column = spec[..place].chars().count();
    err!(Value, "{message}\n    {spec}\n    {:column$}^", "")
}

fn read(spec: &str) -> Result<(Vec<Term>, Option<Term>)> {
    let mut terms = vec![Term { parts: vec![], start: 0 }];
    let mut arrow = false;
    let mut place = 0;
    while let Some(c) = spec[place..].chars().next() {
        let next = place + c.len_utf8();
        let rest = &spec[place..];
        let term = terms.last_mut().expect("there is always one");
        match c {
            _ if rest.starts_with("->") => {
                if arrow {
                    return Err(at(spec, place, "there is a second `->`"));
                }
                arrow = true;
                place += 2;
                terms.push(Term { parts: vec![], start: place });
                continue;
            }
            _ if rest.starts_with("...") => {
                if term.ellipsis().is_some() {
                    return Err(at(spec, place, "an operand has one ellipsis at most"));
                }
                term.parts.push((place, None));
                place += 3;
                continue;
            }
            'a'..='z' | 'A'..='Z' => term.parts.push((place, Some(c))),
            ',' if arrow => return Err(at(spec, place, "there is one output, without a comma")),
            ',' => terms.push(Term { parts: vec![], start: next }),
            '.' => return Err(at(spec, place, "an ellipsis is three dots, `...`")),
            '-' => return Err(at(spec, place, "the output follows on an arrow, `->`")),
            c if c.is_whitespace() => {}
            c => return Err(at(spec, place, format_args!("an index is a letter, and `{c}` is none"))),
        }
        place = next;
    }
    let output = if arrow { terms.pop() } else { None };
    Ok((terms, output))
}

/// Reads the notation for operands of these shapes.
pub(super) fn meaning(spec: &str, shapes: &[&[usize]]) -> Result<Meaning> {
    let (terms, output) = read(spec)?;
    if terms.len() != shapes.len() {
        let message = format!("the notation has {} operands, and {} were given", terms.len(), shapes.len());
        let place = terms.get(shapes.len()).map_or(spec.len(), |extra| extra.start);
        return Err(at(spec, place, message));
    }
    let mut lengths: BTreeMap<Index, usize> = BTreeMap::new();
    let mut operands = Vec::with_capacity(terms.len());
    for (k, (term, shape)) in terms.iter().zip(shapes).enumerate() {
        let letters = term.letters().count();
        let rest = shape.len().checked_sub(letters).filter(|&n| n == 0 || term.ellipsis().is_some());
        let Some(rest) = rest else {
            let more = if term.ellipsis().is_some() { " or more" } else { "" };
            let message =
                format!("operand {k} has shape {shape:?}, and is written with {letters} indices{more}");
            return Err(at(spec, term.start, message));
        };
        let indices = term.indices(rest);
        let places = term
            .parts
            .iter()
            .flat_map(|&(place, part)| std::iter::repeat_n(place, if part.is_some() { 1 } else { rest }));
        for (axis, (&index, place)) in indices.iter().zip(places).enumerate() {
            let n = shape[axis];
            if let Some(first) = indices[..axis].iter().position(|i| *i == index)
                && shape[first] != n
            {
                let message = format!(
                    "the diagonal of operand {k}, of shape {shape:?}, takes axes {first} and {axis} of one length"
                );
                return Err(at(spec, place, message));
            }
            let known = lengths.entry(index).or_insert(n);
            if *known == 1 {
                *known = n;
            } else if n != 1 && n != *known {
                let message =
                    format!("axis {axis} of operand {k} has {n} elements, and the same index {known} before");
                return Err(at(spec, place, message));
            }
        }
        operands.push(indices);
    }
    let around: usize = lengths.keys().filter(|i| matches!(i, Index::Ellipsis(_))).count();
    let Some(term) = output else {
        // Ellipses first, then every letter that stands there once, in the order of the alphabet.
        let once =
            |letter: char| operands.iter().flatten().filter(|i| **i == Index::Letter(letter)).count() == 1;
        let letters = lengths.keys().filter(|i| matches!(i, Index::Letter(l) if once(*l))).copied();
        let output = (0..around).rev().map(Index::Ellipsis).chain(letters).collect();
        return Ok(Meaning { operands, output, lengths });
    };
    for (k, (place, letter)) in term.letters().enumerate() {
        if !lengths.contains_key(&Index::Letter(letter)) {
            return Err(at(spec, place, format_args!("the output has `{letter}`, which no operand has")));
        }
        if term.letters().take(k).any(|(_, other)| other == letter) {
            return Err(at(spec, place, format_args!("the output has `{letter}` twice")));
        }
    }
    if let Some(place) = term.ellipsis()
        && terms.iter().all(|t| t.ellipsis().is_none())
    {
        return Err(at(spec, place, "the output has an ellipsis, which no operand has"));
    }
    Ok(Meaning { output: term.indices(around), operands, lengths })
}
