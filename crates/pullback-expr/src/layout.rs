//! Places for the nodes of a graph, in layers (Sugiyama's method): the layer of a node is the longest way to it, the order within the
//! layers is improved by sweeps of barycentres, and the places come from least squares with a least distance (isotonic regression).
//!
//! Every part is linear or `n log n`, so that thousands of nodes take milliseconds.

/// Which way the arrows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From left to right.
    Right,
    /// From top to bottom.
    Down,
}

/// Where everything goes.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The centre of each node.
    pub centres: Vec<(f64, f64)>,
    /// The points that each edge goes through, both ends included.
    pub routes: Vec<Vec<(f64, f64)>>,
    /// The width of the whole.
    pub width: f64,
    /// The height of the whole.
    pub height: f64,
}

/// The gap between nodes of one layer.
const BESIDE: f64 = 18.0;
/// The gap between layers from left to right, where the numbers on the arrows stand, and from top to bottom.
const BETWEEN: (f64, f64) = (86.0, 52.0);
/// The room around the whole.
const MARGIN: f64 = 16.0;
const SWEEPS: usize = 6;

/// A node, or a place that a long edge goes through.
struct Spot {
    layer: usize,
    /// Its extent across the direction of the arrows.
    breadth: f64,
    above: Vec<usize>,
    below: Vec<usize>,
    at: f64,
}

/// Places nodes of the given widths and heights, with arrows along `edges`, which lead from smaller to larger numbers.
///
/// ```
/// use pullback_expr::layout::{layout, Direction};
/// let placed = layout(&[(80.0, 40.0); 3], &[(0, 2), (1, 2)], Direction::Right);
/// assert!(placed.centres[0].0 < placed.centres[2].0);
/// assert!((placed.centres[0].1 - placed.centres[1].1).abs() >= 40.0);
/// ```
pub fn layout(sizes: &[(f64, f64)], edges: &[(usize, usize)], direction: Direction) -> Layout {
    let breadth = |s: &(f64, f64)| if direction == Direction::Right { s.1 } else { s.0 };
    let depth = |s: &(f64, f64)| if direction == Direction::Right { s.0 } else { s.1 };
    let between = if direction == Direction::Right { BETWEEN.0 } else { BETWEEN.1 };
    let layers = layers(sizes.len(), edges);
    let mut spots: Vec<Spot> = (layers.iter().zip(sizes))
        .map(|(layer, s)| Spot {
            layer: *layer,
            breadth: breadth(s),
            above: Vec::new(),
            below: Vec::new(),
            at: 0.0,
        })
        .collect();
    let ways = route(&mut spots, edges);
    let mut rows = rows(&spots);
    order(&mut spots, &mut rows);
    place(&mut spots, &rows);

    let mut thickness = vec![0.0f64; rows.len()];
    for (layer, s) in layers.iter().zip(sizes) {
        thickness[*layer] = thickness[*layer].max(depth(s));
    }
    let mut middle = Vec::with_capacity(rows.len());
    let mut next = MARGIN;
    for t in &thickness {
        middle.push(next + t / 2.0);
        next += t + between;
    }
    let low = spots.iter().map(|s| s.at - s.breadth / 2.0).fold(f64::INFINITY, f64::min);
    let high = spots.iter().map(|s| s.at + s.breadth / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let across = if spots.is_empty() { 0.0 } else { high - low };
    let point = |along: f64, across: f64| match direction {
        Direction::Right => (along, across - low + MARGIN),
        Direction::Down => (across - low + MARGIN, along),
    };
    let centres: Vec<(f64, f64)> =
        spots[..sizes.len()].iter().map(|s| point(middle[s.layer], s.at)).collect();
    let routes = ways.iter().zip(edges).map(|(way, (from, to))| {
        let end =
            |k: usize, sign: f64| point(middle[spots[k].layer] + sign * depth(&sizes[k]) / 2.0, spots[k].at);
        let mut points = vec![end(*from, 1.0)];
        for k in way {
            // Through the whole layer, so that the edge passes between its neighbours.
            let half = thickness[spots[*k].layer] / 2.0;
            points.push(point(middle[spots[*k].layer] - half, spots[*k].at));
            points.push(point(middle[spots[*k].layer] + half, spots[*k].at));
        }
        points.push(end(*to, -1.0));
        points
    });
    let routes = routes.collect();
    let (along, across) = ((next - between).max(0.0) + MARGIN, across + 2.0 * MARGIN);
    let (width, height) = if direction == Direction::Right { (along, across) } else { (across, along) };
    Layout { centres, routes, width, height }
}

/// The layer of each node: the longest way to it, and then as late as its users allow, so that a term stands beside its sum.
fn layers(n: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; n];
    let mut sorted = edges.to_vec();
    sorted.sort_unstable_by_key(|e| e.1);
    for (from, to) in &sorted {
        layer[*to] = layer[*to].max(layer[*from] + 1);
    }
    let mut latest = vec![usize::MAX; n];
    sorted.sort_unstable_by_key(|e| std::cmp::Reverse(e.0));
    for (from, to) in &sorted {
        // The users of a node come after it, and are settled.
        let user = if latest[*to] == usize::MAX { layer[*to] } else { latest[*to] };
        latest[*from] = latest[*from].min(user - 1);
    }
    latest.iter().zip(&layer).map(|(late, early)| if *late == usize::MAX { *early } else { *late }).collect()
}

/// Breaks long edges into short ones, unless that would be more places than nodes by far. Returns the places of each edge.
fn route(spots: &mut Vec<Spot>, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut room = 4 * spots.len() + 2000;
    let mut ways = Vec::with_capacity(edges.len());
    for (from, to) in edges {
        let (first, last) = (spots[*from].layer + 1, spots[*to].layer);
        let mut way = Vec::new();
        if last - first <= room {
            room -= last - first;
            for layer in first..last {
                way.push(spots.len());
                spots.push(Spot { layer, breadth: 2.0, above: Vec::new(), below: Vec::new(), at: 0.0 });
            }
        }
        let mut previous = *from;
        for next in way.iter().copied().chain(std::iter::once(*to)) {
            spots[previous].below.push(next);
            spots[next].above.push(previous);
            previous = next;
        }
        ways.push(way);
    }
    ways
}

fn rows(spots: &[Spot]) -> Vec<Vec<usize>> {
    let count = spots.iter().map(|s| s.layer + 1).max().unwrap_or(0);
    let mut rows = vec![Vec::new(); count];
    for (k, s) in spots.iter().enumerate() {
        rows[s.layer].push(k);
    }
    rows
}

fn mean(spots: &[Spot], of: &[usize], otherwise: f64) -> f64 {
    if of.is_empty() { otherwise } else { of.iter().map(|k| spots[*k].at).sum::<f64>() / of.len() as f64 }
}

/// Fewer crossings: each layer sorted by the mean place of its neighbours, downward and upward in turn.
fn order(spots: &mut [Spot], rows: &mut [Vec<usize>]) {
    let number =
        |spots: &mut [Spot], row: &[usize]| row.iter().enumerate().for_each(|(i, k)| spots[*k].at = i as f64);
    rows.iter().for_each(|row| number(spots, row));
    let count = rows.len();
    for sweep in 0..SWEEPS {
        for i in 0..count {
            let down = sweep % 2 == 0;
            let row = &mut rows[if down { i } else { count - 1 - i }];
            let mut keyed: Vec<(f64, usize)> = row
                .iter()
                .map(|k| {
                    (mean(spots, if down { &spots[*k].above } else { &spots[*k].below }, spots[*k].at), *k)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|k| k.1).collect();
            number(spots, row);
        }
    }
}

/// Places across the layers: near the neighbours, in order, and not too near to one another.
fn place(spots: &mut [Spot], rows: &[Vec<usize>]) {
    for row in rows {
        let wanted: Vec<f64> = row.iter().map(|_| 0.0).collect();
        settle(spots, row, &wanted);
    }
    for sweep in 0..2 * SWEEPS {
        for i in 0..rows.len() {
            let row = &rows[if sweep % 2 == 0 { i } else { rows.len() - 1 - i }];
            let wanted: Vec<f64> = row
                .iter()
                .map(|k| {
                    let s = &spots[*k];
                    let (above, below) = (mean(spots, &s.above, s.at), mean(spots, &s.below, s.at));
                    match (s.above.is_empty(), s.below.is_empty()) {
                        (false, false) => (above + below) / 2.0,
                        (true, _) => below,
                        _ => above,
                    }
                })
                .collect();
            settle(spots, row, &wanted);
        }
    }
}

/// The places nearest to those wanted (in the mean square) that keep the order and the distances.
fn settle(spots: &mut [Spot], row: &[usize], wanted: &[f64]) {
    // In terms of z = place - (room taken by those before), order and distance mean that z does not decrease.
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    for (i, k) in row.iter().enumerate() {
        if i > 0 {
            offset += (spots[row[i - 1]].breadth + spots[*k].breadth) / 2.0 + BESIDE;
        }
        offsets.push(offset);
    }
    // Blocks of equal z: (sum, count).
    let mut blocks: Vec<(f64, f64)> = Vec::new();
    for (w, o) in wanted.iter().zip(&offsets) {
        blocks.push((w - o, 1.0));
        while blocks.len() > 1 {
            let (last, before) = (blocks[blocks.len() - 1], blocks[blocks.len() - 2]);
            if before.0 / before.1 <= last.0 / last.1 {
                break;
            }
            blocks.pop();
            let end = blocks.len() - 1;
            blocks[end] = (before.0 + last.0, before.1 + last.1);
        }
    }
    let z = blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count, *count as usize));
    for ((k, z), o) in row.iter().zip(z).zip(&offsets) {
        spots[*k].at = z + o;
    }
}
