//! In which order many operands are multiplied.

/// Operands up to which the best order is looked for: `3^n` pairs of sets are compared.
const EXACT: usize = 8;

/// Which indices an operand has, as bits.
pub(super) type Set = u128;

struct Costs<'a> {
    lengths: &'a [f64],
    output: Set,
}

impl Costs<'_> {
    /// The elements over these indices.
    fn size(&self, set: Set) -> f64 {
        let mut size = 1.0;
        let mut rest = set;
        while rest != 0 {
            size *= self.lengths[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        size
    }

    /// What a product of two costs: its multiplications, and the elements it writes.
    fn product(&self, a: Set, b: Set, result: Set) -> f64 {
        self.size(a | b) + self.size(result)
    }
}

/// Pairs of operands to multiply, one after the other. Both are taken out of the list, and the product is put at its end: positions are
/// those in the list at that time, the larger one first.
pub(super) fn order(operands: &[Set], output: Set, lengths: &[f64]) -> Vec<(usize, usize)> {
    let costs = Costs { lengths, output };
    match operands.len() {
        0 | 1 => vec![],
        2 => vec![(1, 0)],
        n if n <= EXACT => best(operands, &costs),
        _ => greedy(operands, &costs),
    }
}

/// The least cost of all orders, by dynamic programming over sets of operands.
fn best(operands: &[Set], costs: &Costs) -> Vec<(usize, usize)> {
    let all = (1usize << operands.len()) - 1;
    let of = |subset: usize| {
        let chosen = operands.iter().enumerate().filter(|(k, _)| subset >> k & 1 == 1);
        chosen.fold(0, |set, (_, o)| set | o)
    };
    // What is left of a set of operands once they are multiplied: the indices that somebody else needs.
    let result: Vec<Set> = (0..=all).map(|s| of(s) & (of(all & !s) | costs.output)).collect();
    let mut least = vec![(0.0, 0usize); all + 1];
    for set in 1..=all {
        if set.is_power_of_two() {
            continue;
        }
        least[set] = (f64::INFINITY, 0);
        let lowest = set & set.wrapping_neg();
        let mut part = (set - 1) & set;
        while part != 0 {
            // Each pair once: the part that has the first operand.
            if part & lowest != 0 {
                let rest = set & !part;
                let [a, b] = [part, rest].map(|s| if s.is_power_of_two() { of(s) } else { result[s] });
                let cost = least[part].0 + least[rest].0 + costs.product(a, b, result[set]);
                if cost < least[set].0 {
                    least[set] = (cost, part);
                }
            }
            part = (part - 1) & set;
        }
    }
    let mut sets: Vec<usize> = (0..operands.len()).map(|k| 1 << k).collect();
    let mut pairs = Vec::new();
    multiply(all, &least, &mut sets, &mut pairs);
    pairs
}

fn multiply(set: usize, least: &[(f64, usize)], sets: &mut Vec<usize>, pairs: &mut Vec<(usize, usize)>) {
    if set.is_power_of_two() {
        return;
    }
    let parts = [least[set].1, set & !least[set].1];
    parts.iter().for_each(|&part| multiply(part, least, sets, pairs));
    let [a, b] = parts.map(|part| sets.iter().position(|s| *s == part).expect("it was multiplied before"));
    let pair = (a.max(b), a.min(b));
    sets.remove(pair.0);
    sets.remove(pair.1);
    sets.push(set);
    pairs.push(pair);
}

/// The pair next that makes the least of what it takes away, again and again.
fn greedy(operands: &[Set], costs: &Costs) -> Vec<(usize, usize)> {
    let mut sets = operands.to_vec();
    let mut pairs = Vec::new();
    while sets.len() > 1 {
        let mut chosen = (f64::INFINITY, f64::INFINITY, (0, 0), 0);
        for a in 1..sets.len() {
            for b in 0..a {
                let others = sets.iter().enumerate().filter(|(k, _)| *k != a && *k != b);
                let needed = others.fold(costs.output, |set, (_, o)| set | o);
                let result = (sets[a] | sets[b]) & needed;
                let growth = costs.size(result) - costs.size(sets[a]) - costs.size(sets[b]);
                let cost = costs.product(sets[a], sets[b], result);
                if (growth, cost) < (chosen.0, chosen.1) {
                    chosen = (growth, cost, (a, b), result);
                }
            }
        }
        let (_, _, (a, b), result) = chosen;
        sets.remove(a);
        sets.remove(b);
        sets.push(result);
        pairs.push((a, b));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The multiplications of an order.
    fn cost(operands: &[Set], output: Set, lengths: &[f64], pairs: &[(usize, usize)]) -> f64 {
        let costs = Costs { lengths, output };
        let (mut sets, mut total) = (operands.to_vec(), 0.0);
        for &(a, b) in pairs {
            let (x, y) = (sets.remove(a), sets.remove(b));
            let needed = sets.iter().fold(output, |set, o| set | o);
            total += costs.size(x | y);
            sets.push((x | y) & needed);
        }
        assert_eq!(sets.len(), 1);
        total
    }

    #[test]
    fn a_chain_of_matrices_begins_where_it_is_thin() {
        // (2 x 100)(100 x 3)(3 x 100)(100 x 2): both thin products first.
        let operands = [0b00011, 0b00110, 0b01100, 0b11000];
        let lengths = [2.0, 100.0, 3.0, 100.0, 2.0];
        let pairs = order(&operands, 0b10001, &lengths);
        assert_eq!(cost(&operands, 0b10001, &lengths, &pairs), 600.0 + 600.0 + 12.0);
    }

    #[test]
    fn many_operands_are_multiplied_in_a_good_order() {
        // A chain of twelve square matrices and a vector at its end: vectors all the way.
        let n = 12;
        let mut operands: Vec<Set> = (0..n).map(|k| 0b11 << k).collect();
        operands.push(1 << n);
        let lengths = vec![10.0; n + 1];
        let pairs = order(&operands, 1, &lengths);
        assert_eq!(cost(&operands, 1, &lengths, &pairs), 100.0 * n as f64);
    }
}
