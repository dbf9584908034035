//! How much work is done on a graph, counted for tests: twice as much for one that is twice as long, and not four times.

/// Counts so many units of work. Costs nothing outside of tests.
#[inline(always)]
pub(crate) fn note(_times: usize) {
    #[cfg(test)]
    COUNT.set(COUNT.get() + _times);
}

#[cfg(test)]
thread_local! {
    static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The work that was counted while `f` ran.
#[cfg(test)]
pub(crate) fn of(f: impl FnOnce()) -> usize {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}
