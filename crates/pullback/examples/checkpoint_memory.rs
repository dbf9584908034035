//! What checkpoints cost and save: the gradient of a loop of up to 100,000 steps, by every schedule.
//!
//! `cargo run --release --example checkpoint_memory` prints the table of docs/benchmarks-checkpoint.md and draws docs/plots/checkpoint.svg.

use pullback::memory;
use pullback::prelude::*;
use pullback::{Schedule, scan_with};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Elements of the state: 512 bytes.
const WIDTH: usize = 64;

struct Run {
    steps: usize,
    evaluations: usize,
    peak: usize,
    seconds: f64,
}

/// One step of Euler's method for `x' = -sin x`.
fn step(x: &Tensor) -> Tensor {
    x - x.sin() * 1e-3
}

fn measure(steps: usize, schedule: Option<Schedule>) -> Run {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let body = Arc::new(move |x: &Tensor, _: &()| {
        counter.fetch_add(1, Relaxed);
        (step(x), ())
    });
    let loss = |x: &Tensor| {
        let body = body.clone();
        let body = move |x: &Tensor, i: &()| body(x, i);
        match schedule {
            None => scan(body, x, steps).0.sum(),
            Some(schedule) => scan_with(schedule.rerun(), body, x, steps).0.sum(),
        }
    };
    let x = Tensor::linspace(0.1, 1.0, WIDTH);
    let before = memory::live_bytes();
    memory::reset_peak();
    let start = Instant::now();
    let g = grad(loss)(&x);
    let seconds = start.elapsed().as_secs_f64();
    assert!(g.to_vec::<f64>().iter().all(|v| v.is_finite()));
    Run { steps, evaluations: count.load(Relaxed), peak: memory::peak_bytes() - before, seconds }
}

fn main() {
    let schedules = [
        ("none", None),
        ("All", Some(Schedule::All)),
        ("Sqrt", Some(Schedule::Sqrt)),
        ("Recursive", Some(Schedule::Recursive)),
        ("Binomial, 50 slots", Some(Schedule::Binomial { slots: 50 })),
        ("Online, 50 slots", Some(Schedule::Online { slots: 50 })),
        ("Binomial, 10 slots", Some(Schedule::Binomial { slots: 10 })),
    ];
    let sizes = [100, 1_000, 10_000, 100_000];
    println!(
        "| schedule | steps | step evaluations | per step | peak bytes | states of {} B | seconds |",
        8 * WIDTH
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let mut series = Vec::new();
    for (name, schedule) in schedules {
        measure(sizes[0], schedule); // warms the pools
        let runs: Vec<Run> = sizes.iter().map(|&n| measure(n, schedule)).collect();
        for r in &runs {
            println!(
                "| {name} | {} | {} | {:.2} | {} | {:.1} | {:.3} |",
                r.steps,
                r.evaluations,
                r.evaluations as f64 / r.steps as f64,
                r.peak,
                r.peak as f64 / (8 * WIDTH) as f64,
                r.seconds
            );
        }
        series.push((name, runs));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plots/checkpoint.svg");
    std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plots"))
        .expect("a folder for plots");
    std::fs::write(path, plot(&series)).expect("the plot is written");
}

const COLOURS: [&str; 7] = ["#444444", "#8c564b", "#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#ff7f0e"];

/// Peak memory and evaluations of a step, over the number of steps.
fn plot(series: &[(&str, Vec<Run>)]) -> String {
    let mut svg = String::from(
        "<svg xmlns='http://www.w3.org/2000/svg' width='900' height='400' font-family='sans-serif' font-size='12'>\n\
         <rect width='900' height='400' fill='white'/>\n",
    );
    let bytes = |r: &Run| (r.peak as f64).log10();
    let evaluations = |r: &Run| r.evaluations as f64 / r.steps as f64;
    panel(&mut svg, 60.0, "peak bytes", (3.0, 8.5), |v| format!("1e{v:.0}"), series, bytes);
    panel(
        &mut svg,
        430.0,
        "evaluations of each step",
        (0.0, 10.0),
        |v| format!("{v:.0}"),
        series,
        evaluations,
    );
    for (k, (name, _)) in series.iter().enumerate() {
        let y = 50 + 20 * k;
        let _ = writeln!(svg, "<rect x='770' y='{}' width='12' height='3' fill='{}'/>", y - 5, COLOURS[k]);
        let _ = writeln!(svg, "<text x='788' y='{y}'>{name}</text>");
    }
    svg + "</svg>\n"
}

fn panel(
    svg: &mut String,
    left: f64,
    title: &str,
    (low, high): (f64, f64),
    label: impl Fn(f64) -> String,
    series: &[(&str, Vec<Run>)],
    value: impl Fn(&Run) -> f64,
) {
    let (width, top, bottom) = (300.0, 40.0, 350.0);
    let x = |steps: usize| left + ((steps as f64).log10() - 2.0) / 3.0 * width;
    let y = |v: f64| bottom - (v - low) / (high - low) * (bottom - top);
    let _ = writeln!(svg, "<text x='{left}' y='25' font-weight='bold'>{title}</text>");
    for k in 0..=(high - low) as usize {
        let at = y(low + k as f64);
        let _ = writeln!(svg, "<path d='M{left} {at:.1}h{width}' stroke='#dddddd'/>");
        let text = label(low + k as f64);
        let _ = writeln!(svg, "<text x='{}' y='{:.1}' text-anchor='end'>{text}</text>", left - 5.0, at + 4.0);
    }
    for power in 2..=5 {
        let at = x(10usize.pow(power));
        let _ = writeln!(svg, "<text x='{at:.1}' y='370' text-anchor='middle'>1e{power}</text>");
    }
    let _ = writeln!(svg, "<text x='{}' y='388' text-anchor='middle'>steps</text>", left + width / 2.0);
    for ((_, runs), colour) in series.iter().zip(COLOURS) {
        let points: Vec<String> =
            runs.iter().map(|r| format!("{:.1},{:.1}", x(r.steps), y(value(r)))).collect();
        let _ = writeln!(
            svg,
            "<polyline points='{}' fill='none' stroke='{colour}' stroke-width='2'/>",
            points.join(" ")
        );
    }
}
