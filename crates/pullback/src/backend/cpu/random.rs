//! Random programs over every operation are the same in every mode. Those that are not are made small before they are shown.
//!
//! Hundreds of them run with the other tests. For more, from a new seed each time:
//!
//! ```sh
//! PULLBACK_PROGRAMS=20000 cargo test --release -p pullback --lib random_programs -- --nocapture
//! ```
//!
//! The seed is printed, and `PULLBACK_SEED` repeats it.

mod generate;
mod laws;

use crate::graph::fault::{self, Fault};
use crate::ops::{Op, Sample};
use crate::opt::laws::shrunk;
use generate::Program;
use laws::{COUNTS, Modes, broken};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many programs run with the other tests.
const PROGRAMS: u64 = 650;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{variable} is no number: {v}")))
}

/// What is wrong with the program of a seed, and the smallest program that has something wrong.
fn wrong(seed: u64, samples: &[Sample]) -> Option<String> {
    let program = Program::new(seed, samples);
    let with = |graph| Program { graph, draws: program.draws.clone(), ..program };
    let call = seed.wrapping_mul(3);
    broken(&program, call, Modes::All)?;
    let small = with(shrunk(&program.graph, &|g| broken(&with(g.clone()), call, Modes::All).is_some()));
    let law = broken(&small, call, Modes::All).expect("it was made smaller as long as it breaks a law");
    Some(format!("program {seed}: {law}\n{}", small.graph))
}

#[test]
fn random_programs_are_the_same_in_every_mode() {
    let asked = number("PULLBACK_PROGRAMS");
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64 % 1_000_000_007);
    let first = number("PULLBACK_SEED").unwrap_or_else(|| if asked.is_some() { now() } else { 0 });
    let count = asked.unwrap_or(PROGRAMS);
    println!("{count} programs from PULLBACK_SEED={first} on");
    let samples = Op::samples();
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut found = Vec::new();
        while let k = next.fetch_add(1, Relaxed)
            && k < count
        {
            if let Some(wrong) = wrong(first + k, &samples) {
                println!("{wrong}\n");
                found.push(wrong);
                // Enough to see what is wrong.
                if found.len() == 3 {
                    next.store(count, Relaxed);
                }
            }
        }
        (found, COUNTS.get())
    };
    let (mut found, mut compared, mut doubtful) = (Vec::new(), 0, 0);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in all {
            let (wrong, counts) = thread.join().expect("panics of programs are caught");
            found.extend(wrong);
            (compared, doubtful) = (compared + counts.0, doubtful + counts.1);
        }
    });
    println!("{compared} results compared, {doubtful} within what roundings do there");
    assert!(found.is_empty(), "from PULLBACK_SEED={first}:\n{}", found.join("\n\n"));
    assert!(
        compared > 10 * count as usize && doubtful * 20 < compared,
        "{doubtful} of {compared} are doubtful"
    );
}

#[test]
fn the_programs_use_every_operation() {
    let samples = Op::samples();
    let mut used = BTreeSet::new();
    for seed in 0..PROGRAMS {
        let program = Program::new(seed, &samples);
        used.extend(program.graph.steps.iter().map(|s| s.op.name()));
    }
    let unused: Vec<&str> = Op::NAMES.iter().copied().filter(|name| !used.contains(name)).collect();
    assert_eq!(unused, [""; 0], "no program of the {PROGRAMS} that run has these");
}

/// The mutation test: a mistake in a pass, in the planner or in a fused group is found by the programs that run with the tests.
#[test]
fn planted_faults_are_found() {
    let samples = Op::samples();
    let finds = |fault: Fault, seed: u64| {
        let program = Program::new(seed, &samples);
        fault::with(fault, || broken(&program, seed.wrapping_mul(3), Modes::Compiled)).is_some()
    };
    let missed = |fault: &Fault| match (0..PROGRAMS).find(|&seed| finds(*fault, seed)) {
        Some(seed) => {
            println!("{fault:?} by program {seed}");
            false
        }
        None => true,
    };
    let missed: Vec<Fault> = Fault::ALL.iter().copied().filter(missed).collect();
    assert_eq!(missed, []);
}
