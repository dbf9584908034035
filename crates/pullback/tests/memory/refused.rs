//! Memory that the system refuses is an error that says how much was asked for, and the thread goes on.

use pullback::scalar::{self, Real, Tape, Var, WideDual};
use pullback_testing::message;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's memory, of which a thread gets only so much at a time.
struct Limited;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

// SAFETY: as the system's allocator, which may refuse too.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > LIMIT.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// What `f` says when nothing above a mebibyte is to be had.
#[track_caller]
fn refused<R>(f: impl FnOnce() -> R) -> String {
    LIMIT.set(1 << 20);
    let text = message(f);
    LIMIT.set(usize::MAX);
    text
}

#[test]
fn a_tape_that_gets_no_memory_says_how_much_it_asked_for() {
    let mut tape = Tape::new();
    let text = refused(|| tape.record(|t| t.input(1.0) * t.input(2.0)));
    assert!(text.starts_with("out of memory: 1835008 bytes"), "{text}");
    // The tape is as good as before.
    let slope = tape.record(|t| {
        let x = t.inputs(&[3.0, 2.0]);
        t.derivative(x[0] * x[1], x[0])
    });
    assert_eq!(slope, 2.0);

    // The adjoints of a tape that is there.
    tape.record(|t| {
        let x = t.inputs(&[1.0, 1.0]);
        let y = (0..200_000).fold(x[0], |y, _| y * x[1]);
        let text = refused(|| t.derivative(y, x[0]));
        assert!(text.contains("out of memory") && text.contains("adjoints"), "{text}");
        assert_eq!(t.derivative(y, x[1]), 200_000.0);
    });

    let text = refused(|| {
        tape.record(|t| {
            let x = t.inputs(&[1.0, 2.0]);
            let many: Vec<Var> = (0..20_000).map(|k| x[k % 2]).collect();
            (0..10).map(|_| Var::dot(&many, &many)).sum::<Var>()
        })
    });
    assert!(text.contains("out of memory") && text.contains("sums"), "{text}");

    let units: Vec<Vec<f64>> = vec![vec![1.0]; 1000];
    let directions: Vec<&[f64]> = units.iter().map(Vec::as_slice).collect();
    let long = |x: &[WideDual]| [(0..1000).fold(x[0], |y, _| y * x[0])];
    let text = refused(|| scalar::directions(long, &[1.0], &directions));
    assert!(text.contains("out of memory") && text.contains("tangents"), "{text}");
}
