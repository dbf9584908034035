//! How long graphs, records and saved values live.

use pullback::{Policy, checkpoint_with, memory, prelude::*};
use pullback_testing::{alone, message};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const N: usize = 100_000;
/// What a tensor of `N` f64 numbers takes; buffers are up to an eighth larger than asked for.
const BUFFER: usize = N * 8;

fn buffers(bytes: usize) -> f64 {
    bytes as f64 / BUFFER as f64
}

fn vector() -> Tensor {
    Tensor::linspace(0.1, 0.9, N)
}

/// Runs on a thread with the stack that threads have by default, and hands its result back.
fn on_a_small_stack<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(f).unwrap().join().unwrap()
}

#[test]
fn a_million_operations_forward_backward_and_dropped() {
    let _turn = alone();
    on_a_small_stack(|| {
        let before = memory::live_tensors();
        let x = Tensor::scalar(1.0).requires_grad();
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y *= 1.000001;
        }
        assert!(memory::live_tensors() >= before + 1_000_000, "the graph is there");
        y.backward();
        assert!((x.grad().unwrap().item() - y.item()).abs() < 1e-9);
        drop(y);
        x.zero_grad();
        drop(x);
        assert_eq!(memory::live_tensors(), before);
    });
}

#[test]
fn an_ending_thread_may_still_compute_and_drop() {
    struct AtTheEnd(Option<Tensor>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let held = self.0.take().unwrap();
            let y = &held * &held + 1.0;
            y.backward();
            assert_eq!(held.grad().unwrap().item(), 6.0);
        }
    }
    thread_local! {
        static HELD: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
    }
    let _turn = alone();
    // Destructors of thread-locals run in no order to rely on: this one is made ready before the first tensor, or after.
    for first in [true, false] {
        std::thread::spawn(move || {
            if first {
                HELD.set(None);
            }
            HELD.set(Some(AtTheEnd(Some(Tensor::scalar(3.0).requires_grad()))));
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_million_operations_that_save_their_values() {
    let _turn = alone();
    on_a_small_stack(|| {
        let before = memory::live_tensors();
        let x = Tensor::scalar(0.5).requires_grad();
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = y.sin();
        }
        y.into_backward();
        assert!(x.grad().unwrap().item() > 0.0);
        drop(x);
        assert_eq!(memory::live_tensors(), before);
    });
}

#[test]
fn a_million_operations_in_a_function() {
    let _turn = alone();
    on_a_small_stack(|| {
        let before = memory::live_tensors();
        let f = |x: &Tensor| (0..1_000_000).fold(x.clone(), |y, _| y + 1e-6);
        assert_eq!(grad(f)(&Tensor::scalar(1.0)).item(), 1.0);
        assert_eq!(memory::live_tensors(), before);
    });
}

/// Each node has two users: a walk that did not wait for both would take 2^n steps.
#[test]
fn a_ladder_is_walked_once() {
    let _turn = alone();
    let x = Tensor::scalar(1.0).requires_grad();
    let y = (0..1000).fold(x.clone(), |y, _| &y * 0.5 + &y * 0.5);
    y.backward();
    assert_eq!(x.grad().unwrap().item(), 1.0);
}

#[test]
fn no_graph_outlives_its_last_handle() {
    let _turn = alone();
    let before = memory::live_tensors();
    let x = vector().requires_grad();
    let held = memory::live_tensors();
    for _ in 0..10 {
        let y = (x.sin() * &x).exp();
        let loss = (&y + y.square()).sum();
        loss.backward();
        x.zero_grad();
    }
    assert_eq!(memory::live_tensors(), held, "a training loop leaves nothing behind");
    let never_walked = x.square().sum();
    drop(never_walked);
    assert_eq!(memory::live_tensors(), held);
    drop(x);
    assert_eq!(memory::live_tensors(), before);
}

#[test]
fn a_part_of_a_graph_keeps_only_what_it_needs() {
    let _turn = alone();
    let before = memory::live_tensors();
    let x = Tensor::scalar(1.0).requires_grad();
    let trunk = (0..10).fold(x.clone(), |y, _| y * 1.5);
    let trunk_only = memory::live_tensors();
    let branch = (0..1000).fold(trunk.clone(), |y, _| y * 1.001);
    drop(branch);
    assert_eq!(memory::live_tensors(), trunk_only);
    drop(trunk);
    drop(x);
    assert_eq!(memory::live_tensors(), before);
}

#[test]
fn a_gradient_does_not_keep_its_graph() {
    let _turn = alone();
    let x = vector().requires_grad();
    let held = memory::live_tensors();
    (x.sin() * &x).sum().backward();
    let g = x.grad().unwrap();
    x.zero_grad();
    assert_eq!(memory::live_tensors(), held + 1);
    assert!(!g.needs_grad() && g.is_leaf());
}

#[test]
fn function_transforms_leave_nothing() {
    let _turn = alone();
    let x = Tensor::from([0.3, 0.4]);
    let before = memory::live_tensors();
    let f = |x: &Tensor| (x.sin() * x).sum();
    for _ in 0..3 {
        grad(f)(&x);
        grad(|x: &Tensor| grad(f)(x).sum())(&x);
        let _ = jvp(grad(f), &x, &x);
        let (_, pull) = vjp(f, &x);
        pull(&Tensor::scalar(1.0));
    }
    assert_eq!(memory::live_tensors(), before);
}

#[test]
fn a_function_records_nothing_for_the_dead() {
    let _turn = alone();
    let escaped = Mutex::new(None);
    grad(|x: &Tensor| {
        let y = x.square();
        *escaped.lock().unwrap() = Some(y.clone());
        y
    })(&Tensor::scalar(2.0));
    let y = escaped.into_inner().unwrap().unwrap();
    let held = memory::live_tensors();
    let z = (0..100).fold(y.clone(), |z, _| z + 1.0);
    assert_eq!(z.item(), 104.0);
    assert_eq!(memory::live_tensors(), held + 1, "no chain of records behind z");
}

/// A sum reads neither its inputs nor its output backward: a chain of sums keeps no buffer per operation.
#[test]
fn what_no_pullback_reads_is_freed() {
    let _turn = alone();
    let x = vector().requires_grad();
    let before = memory::live_bytes();
    let mut y = &x + 1.0;
    for _ in 0..50 {
        y += &x;
    }
    assert!(buffers(memory::live_bytes() - before) < 1.5, "only y itself is alive");
    y.sum().backward();
    assert_eq!(x.grad().unwrap().item_at([0]), 52.0 - 1.0);
}

#[test]
fn what_a_pullback_reads_is_kept() {
    let _turn = alone();
    let x = vector().requires_grad();
    let before = memory::live_bytes();
    let y = (0..10).fold(x.clone(), |y, _| y.sin());
    let used = buffers(memory::live_bytes() - before);
    assert!((9.5..12.0).contains(&used), "ten values, the last one included: {used}");
    drop(y);
    assert!(buffers(memory::live_bytes() - before) < 0.1);
}

#[test]
fn a_product_with_a_constant_keeps_the_constant_only() {
    let _turn = alone();
    let (x, c) = (vector().requires_grad(), vector());
    let before = memory::live_bytes();
    let y = (0..10).fold(x.clone(), |y, _| y * &c);
    assert!(buffers(memory::live_bytes() - before) < 1.5);
    assert!(y.needs_grad());
}

#[test]
fn an_output_shared_by_its_users_is_kept_once() {
    let _turn = alone();
    let x = vector().requires_grad();
    let before = memory::live_bytes();
    let y = x.exp(); // kept for its own pullback
    let z = y.sin(); // keeps y too, the same buffer
    assert!(buffers(memory::live_bytes() - before) < 2.5);
    drop((y, z));
}

#[test]
fn under_no_grad_nothing_is_kept() {
    let _turn = alone();
    let x = vector().requires_grad();
    let before = memory::live_bytes();
    let y = no_grad(|| (0..10).fold(x.clone(), |y, _| y.sin()));
    assert!(buffers(memory::live_bytes() - before) < 1.5);
    drop(y);
}

/// A graph that is given up is freed as the walk goes: when it arrives at the leaf, all but nothing is left of it.
#[test]
fn a_consumed_graph_frees_as_it_goes() {
    let _turn = alone();
    let run = |backward: fn(Tensor)| {
        let x = vector().requires_grad();
        let at_leaf = Arc::new(AtomicUsize::new(0));
        let seen = at_leaf.clone();
        x.on_grad(move |_| {
            seen.store(memory::live_bytes(), Relaxed);
            None
        });
        memory::reset_peak();
        let before = memory::live_bytes();
        let y = (0..20).fold(x.clone(), |y, _| y.sin()).sum();
        let forward = buffers(memory::live_bytes() - before);
        backward(y);
        let peak = buffers(memory::peak_bytes() - before);
        assert!(peak < forward + 3.5, "{peak} buffers at the peak, {forward} after the forward pass");
        buffers(at_leaf.load(Relaxed) - before)
    };
    let (consumed, kept) = (run(Tensor::into_backward), run(|y| y.backward()));
    assert!(consumed < 4.5, "{consumed} buffers when the walk arrives at the leaf");
    assert!(kept > 19.0, "{kept}: a graph that somebody holds stays");
}

#[test]
fn a_function_frees_as_it_goes() {
    let _turn = alone();
    let x = vector();
    memory::reset_peak();
    let before = memory::live_bytes();
    let f = |x: &Tensor| (0..20).fold(x.clone(), |y, _| y.sin()).sum();
    drop(grad(f)(&x));
    let peak = buffers(memory::peak_bytes() - before);
    assert!(peak < 24.5, "{peak}");
    assert!(buffers(memory::live_bytes() - before) < 0.1);
}

/// Forward mode rides along: its memory does not grow with the length of the program.
#[test]
fn forward_mode_keeps_no_history() {
    let _turn = alone();
    let x = vector();
    let peak = |n: usize| {
        memory::reset_peak();
        let before = memory::live_bytes();
        drop(jvp(|x: &Tensor| (0..n).fold(x.clone(), |y, _| y.sin()), &x, &x));
        buffers(memory::peak_bytes() - before)
    };
    let (short, long) = (peak(3), peak(100));
    assert!(long < short + 1.0, "{short} buffers for 3 operations, {long} for 100");
}

/// What a record holds of the user's may panic when it is dropped: the thread frees the rest of that graph, and others after it.
#[test]
fn a_drop_that_panics_inside_of_a_record_leaves_nothing_behind() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let _turn = alone();
    on_a_small_stack(|| {
        let before = memory::live_tensors();
        let x = Tensor::scalar(1.0).requires_grad();
        let loud = Loud;
        let layer = checkpoint_with(Policy::rerun(), move |x: &Tensor| {
            let _held = &loud;
            x.sin()
        });
        // A record below the loud one, one beside it that is newer, and one above.
        let below = x.exp();
        let y = layer(&below) + below.square();
        drop((layer, below));
        assert_eq!(message(|| drop(y)), "on purpose");
        assert_eq!(memory::live_tensors(), before + 1, "but for x");
        let again = (x.exp().sin() * 2.0).square();
        drop((again, x));
        assert_eq!(memory::live_tensors(), before, "the thread goes on freeing");
    });
}
