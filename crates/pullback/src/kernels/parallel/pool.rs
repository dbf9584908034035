//! The threads that help with a kernel, and how they come to it and leave it.
//!
//! Kernels take microseconds to milliseconds and follow closely on each other, so that a thread that goes to sleep in between, or is waited
//! for until it wakes, costs more than it helps. Therefore helpers look for the next job for a while before they sleep, and a job does not
//! wait for those who have not come: who opened it works too, and when no work is left it is closed, and only those inside are waited for.
//! (A scope of rayon's waits for every task to have been run: on a virtual machine, where a sleeping core takes 50 to 300 µs to wake, copies of
//! 70 µs took 380 on two threads.)

use crate::error::{Error, caught, or_panic};
use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{hint, thread};

/// How often a helper looks for a job before it sleeps: about 50 µs.
const SPINS: usize = 2000;

/// One job at a time, which threads join and leave.
pub(super) struct Pool {
    /// Whether the job is open, how many are inside, how many more may come, and its number: see [`State`].
    state: AtomicU64,
    /// The job. It stays where it is while it is open or anybody is inside.
    job: UnsafeCell<Option<&'static (dyn Fn(usize) + Sync)>>,
    /// What a helper panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Held by the thread that has a job; how many helpers there are.
    helpers: Mutex<usize>,
    /// Helpers that sleep or are about to.
    sleepers: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
}

// SAFETY: the job is written by the one thread that holds `helpers`, while nobody is inside, and read by those inside.
unsafe impl Sync for Pool {}

/// The state of the pool in one word, so that it changes at once.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    const OPEN: u64 = 1;
    const INSIDE: u64 = 1 << 1;
    const ROOM: u64 = 1 << 16;
    const NUMBER: u64 = 1 << 32;

    /// The next job, that so many may join.
    fn next(self, room: usize) -> State {
        let number = (self.0 / Self::NUMBER).wrapping_add(1) % (1 << 32);
        State(number * Self::NUMBER + room as u64 * Self::ROOM + Self::OPEN)
    }

    /// Whether it is another job than the last one, and can be joined.
    fn is_open_after(self, last: State) -> bool {
        let has_room = !(self.0 / Self::ROOM).is_multiple_of(1 << 16);
        self.0 & Self::OPEN != 0 && has_room && self.0 / Self::NUMBER != last.0 / Self::NUMBER
    }

    fn is_empty(self) -> bool {
        (self.0 / Self::INSIDE).is_multiple_of(1 << 15)
    }

    /// With one more inside.
    fn joined(self) -> State {
        State(self.0 + Self::INSIDE - Self::ROOM)
    }
}

/// A mutex that a panic does not close: nothing here is left half done by one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub const fn new() -> Self {
        Pool {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            helpers: Mutex::new(0),
            sleepers: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Runs `work` on this thread and on up to `more` others at the same time, and returns when all have ended. On this one alone if the
    /// others are busy: with the job of another thread, or with the one that this is part of. Each is told who it is: this thread is 0, and
    /// every other one has the same number in each job.
    pub fn run(&'static self, more: usize, work: &(dyn Fn(usize) + Sync)) {
        let Ok(mut helpers) = self.helpers.try_lock() else { return work(0) };
        while *helpers < more && self.start(*helpers + 1) {
            *helpers += 1;
        }
        // SAFETY: nobody is inside, and those who join see what is written before the job is open. The reference is used by those
        // inside only, and `close` waits for them before this function is left.
        unsafe {
            *self.job.get() =
                Some(std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work))
        };
        let before = State(self.state.load(Ordering::Relaxed));
        self.state.store(before.next(more.min(*helpers)).0, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.sleep_lock));
            self.wake.notify_all();
        }
        let ours = catch_unwind(AssertUnwindSafe(|| work(0)));
        self.close();
        let theirs = lock(&self.panic).take();
        drop(helpers);
        if let Some(payload) = ours.err().or(theirs) {
            match payload.downcast::<Error>() {
                // Of a helper's: to be raised as this thread does it.
                Ok(e) => or_panic(Err(*e)),
                Err(other) => resume_unwind(other),
            }
        }
    }

    /// Closes the job and waits for those inside.
    fn close(&self) {
        self.state.fetch_and(!State::OPEN, Ordering::Relaxed);
        let mut looks = 0;
        while !State(self.state.load(Ordering::Acquire)).is_empty() {
            looks += 1;
            // The one inside may need this core.
            if looks < SPINS { hint::spin_loop() } else { thread::yield_now() }
        }
    }

    /// Starts a helper, if the system lets us.
    fn start(&'static self, number: usize) -> bool {
        thread::Builder::new().name(format!("pullback-{number}")).spawn(move || self.help(number)).is_ok()
    }

    /// The life of a helper.
    fn help(&self, number: usize) {
        let mut last = State(0);
        loop {
            last = self.join(last);
            // SAFETY: we are inside.
            let job = unsafe { *self.job.get() }.expect("an open job is there");
            let done = catch_unwind(AssertUnwindSafe(|| caught(|| job(number))));
            match done {
                Ok(Ok(())) => {}
                Ok(Err(e)) => *lock(&self.panic) = Some(Box::new(e)),
                Err(payload) => *lock(&self.panic) = Some(payload),
            }
            self.state.fetch_sub(State::INSIDE, Ordering::Release);
        }
    }

    /// Joins a job other than the last one: looks for it for a while, then sleeps until there is one.
    fn join(&self, last: State) -> State {
        loop {
            for _ in 0..SPINS {
                if let Some(state) = self.try_join(last) {
                    return state;
                }
                hint::spin_loop();
            }
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let mut sleep_lock = lock(&self.sleep_lock);
            // Who opens a job after this look sees us among the sleepers, and wakes us when we have let go of the lock.
            while !State(self.state.load(Ordering::SeqCst)).is_open_after(last) {
                sleep_lock = self.wake.wait(sleep_lock).unwrap_or_else(PoisonError::into_inner);
            }
            drop(sleep_lock);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn try_join(&self, last: State) -> Option<State> {
        let state = State(self.state.load(Ordering::Relaxed));
        let join = || {
            let joined = state.joined().0;
            self.state.compare_exchange(state.0, joined, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        (state.is_open_after(last) && join()).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::time::Duration;

    /// Runs jobs that add up numbers, some of them after a pause in which the helpers fall asleep.
    fn many_jobs(pool: &'static Pool, seed: u64) {
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        for round in 0..rounds {
            let (taken, sum) = (AtomicU64::new(0), AtomicU64::new(0));
            let work = |_: usize| {
                loop {
                    let i = taken.fetch_add(1, Ordering::Relaxed);
                    if i >= 20 {
                        return;
                    }
                    sum.fetch_add(i + seed, Ordering::Relaxed);
                }
            };
            pool.run(3, &work);
            assert_eq!(sum.into_inner(), 190 + 20 * seed);
            if round % (rounds / 4) == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    #[test]
    fn all_work_is_done_when_run_returns() {
        static POOL: Pool = Pool::new();
        many_jobs(&POOL, 1);
    }

    #[test]
    fn several_threads_may_ask_at_once() {
        static POOL: Pool = Pool::new();
        thread::scope(|scope| {
            (0..4).for_each(|seed| {
                scope.spawn(move || many_jobs(&POOL, seed));
            });
        });
    }

    #[test]
    fn others_do_help_and_a_job_inside_of_another_is_done_alone() {
        static POOL: Pool = Pool::new();
        // Neither can go on alone.
        let (both, inner) = (Barrier::new(2), AtomicUsize::new(0));
        POOL.run(1, &|_| {
            both.wait();
            POOL.run(1, &|_| {
                inner.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(inner.into_inner(), 2);
    }

    #[test]
    fn a_panic_of_a_helper_or_of_the_asker_arrives_and_the_pool_goes_on() {
        static POOL: Pool = Pool::new();
        for asker_panics in [true, false] {
            let both = Barrier::new(2);
            let job = |number| {
                both.wait();
                if (number == 0) == asker_panics {
                    panic!("on purpose");
                }
            };
            let result = catch_unwind(AssertUnwindSafe(|| POOL.run(1, &job)));
            assert_eq!(
                *result.expect_err("it panics").downcast::<&str>().expect("with a text"),
                "on purpose"
            );
        }
        many_jobs(&POOL, 2);
    }
}
