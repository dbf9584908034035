//! How much is done to a graph, counted for tests: twice for one that is twice as long, and not four times.

/// Notes that something was looked at so many times. Costs nothing outside of tests.
#[inline(always)]
pub(crate) fn note(_times: usize) {
    #[cfg(test)]
    COUNT.set(COUNT.get() + _times);
}

#[cfg(test)]
thread_local! {
    static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What was noted while `f` ran.
#[cfg(test)]
pub(crate) fn of(f: impl FnOnce()) -> usize {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}
