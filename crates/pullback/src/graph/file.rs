//! Graphs in files, with their constants: made in one place, loaded and run in another.
//!
//! A file is the line `pullback graph 1`, a checksum of all that follows, the length of the text, the text of the graph (large constants are
//! `external` in it), and these constants as safetensors. Numbers are 64 bits, little-endian. Nothing in a file is trusted: the
//! text is parsed and its types are inferred again, and the constants have to be of the types that it names.

use super::parse::parse;
use super::print::Outline;
use super::{Graph, Ref};
use crate::error::{Error, Result, err};
use crate::ops::Op;
use crate::replace::{replace, unusable};
use crate::tensor::{Tensor, archive};
use std::fs;
use std::panic::Location;
use std::path::Path;

const MAGIC: &[u8] = b"pullback graph ";
const VERSION: &[u8] = b"1\n";

impl Graph {
    /// Writes the graph to a file, with its constants.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// # let path = std::env::temp_dir().join(format!("doubled-{}.graph", std::process::id()));
    /// let w = Tensor::arange(0.0, 100.0, 1.0);
    /// trace(|x: &Tensor| x * &w, &Tensor::zeros([100])).save(&path)?;
    /// let loaded = Graph::load(&path)?;
    /// assert_eq!(loaded.run(&[Tensor::ones([100])])?[0].sum().item(), 4950.0);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, location) = (path.as_ref(), Location::caller());
        let write = || {
            let bytes = self.to_bytes()?;
            replace(path, |out| out.write_all(&bytes)).map_err(unusable)
        };
        write().map_err(|e: Error| e.within(path.display()).in_op("save").at(location))
    }

    /// Reads a file that [`save`](Graph::save) wrote. A file that is cut short, changed, or from a later version is refused.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Graph> {
        let (path, location) = (path.as_ref(), Location::caller());
        let read = || Graph::from_bytes(&fs::read(path).map_err(unusable)?);
        read().map_err(|e: Error| e.within(path.display()).in_op("load").at(location))
    }

    /// What [`save`](Graph::save) writes.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if let Some(place) = self.function_of_the_program() {
            return Err(
                err!(Format, "{place}, a function of this program, and cannot be saved").in_op("save")
            );
        }
        let text = Outline(self).to_string();
        let constants: Vec<&Tensor> = self.consts.iter().filter(|t| Outline::keeps_out(t)).collect();
        let mut rest = (text.len() as u64).to_le_bytes().to_vec();
        rest.extend(text.as_bytes());
        rest.extend(archive::to_bytes(&numbered(constants))?);
        Ok([MAGIC, VERSION, &checksum(&rest).to_le_bytes(), &rest].concat())
    }

    /// Reads what [`to_bytes`](Graph::to_bytes) wrote.
    #[track_caller]
    pub fn from_bytes(bytes: &[u8]) -> Result<Graph> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(err!(Format, "this is not the file of a graph"));
        };
        let Some(rest) = rest.strip_prefix(VERSION) else {
            return Err(err!(
                Format,
                "the file is of another version than this library, which reads version 1"
            ));
        };
        let short = || err!(Format, "the file ends too early");
        let (sum, rest) = rest.split_first_chunk().ok_or_else(short)?;
        if u64::from_le_bytes(*sum) != checksum(rest) {
            return Err(err!(Format, "the checksum is wrong: the file was changed or cut short"));
        }
        let (len, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let len =
            usize::try_from(u64::from_le_bytes(*len)).ok().filter(|&n| n <= rest.len()).ok_or_else(short)?;
        let (text, constants) = rest.split_at(len);
        let text = std::str::from_utf8(text).map_err(|_| err!(Format, "the graph is no text"))?;
        let (mut graph, external) = parse(text)?;
        let like = numbered(external.iter().map(|&k| &graph.consts[k]).collect());
        let values = archive::read(&like, constants)?;
        for (k, value) in external.into_iter().zip(values) {
            debug_assert_eq!(graph.aval(Ref::Const(k)).shape[..], *value.shape());
            graph.consts[k] = value;
        }
        Ok(graph)
    }
}

impl Graph {
    /// Where a step, of this graph or of one inside of it, is a function that no text can describe.
    fn function_of_the_program(&self) -> Option<String> {
        self.steps.iter().enumerate().find_map(|(k, step)| {
            let op = step.op.name();
            match (step.op.body(), &step.op) {
                (None, Op::Block(_)) => Some(format!("%{k} is `{op}`")),
                (None, _) => None,
                (Some(body), _) => {
                    let inner = body.bodies().into_iter().find_map(|g| g.function_of_the_program())?;
                    Some(format!("in the `{op}` %{k}, {inner}"))
                }
            }
        })
    }
}

/// Tensors under their numbers, as the elements of a list are named.
fn numbered(tensors: Vec<&Tensor>) -> Vec<(String, &Tensor)> {
    tensors.into_iter().enumerate().map(|(k, t)| (k.to_string(), t)).collect()
}

/// FNV-1a, over words: against accidents, not against malice, which the checks after it are for.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let words = bytes.chunks(8).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b)));
    words.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, step)
}
