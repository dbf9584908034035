"""The other end of the line protocol of benches/src/main.rs, for peers in Python."""

import sys
import time

# Repetitions that are made in any case.
FEWEST = 3


def samples(run, units, budget):
    """Seconds for one unit, of each repetition within about `budget`, after three to warm up."""
    most = 200
    for _ in range(FEWEST):
        run()
    start, found = time.perf_counter(), []
    while len(found) < FEWEST or (time.perf_counter() - start < budget and len(found) < most):
        begin = time.perf_counter()
        run()
        found.append((time.perf_counter() - begin) / units)
    return found


def turns(first, second, budget):
    """Seconds for one repetition of both, in turn within about `budget`: of the shorter one several, so that both take equally long, and of
    both as many as make a millisecond."""

    def timed(run, times):
        begin = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - begin) / times

    usual = [min(timed(run, 1) for _ in range(5)) for run in (first, second)]
    length = max(*usual, 1e-3)
    times = [max(1, round(length / t)) for t in usual]
    start, found = time.perf_counter(), []
    while len(found) < 2 * FEWEST or time.perf_counter() - start < budget:
        found += [timed(first, times[0]), timed(second, times[1])]
    return found


def latency(set_up):
    """Seconds that the first repetition takes beyond a later one."""
    run = set_up()

    def timed():
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    first = timed()
    return first - min(timed() for _ in range(5))


def peak(set_up):
    """Bytes of resident memory at the peak of some repetitions, above what the process held with the data made."""
    run = set_up()
    before = reset_peak()
    for _ in range(3):
        run()
    return status("VmHWM:") - before


def serve(name, tasks, set_threads, memory=None, keep=False):
    """Answers requests. `tasks` maps a name to (units, set_up); `set_up()` makes the data and returns what to repeat.

    With `keep` it is made once for each task: where that takes minutes, as compiling can."""
    kept = {}

    def ready(task):
        run = kept.get(task) or tasks[task][1]()
        if keep:
            kept[task] = run
        return run

    for line in sys.stdin:
        match line.split():
            case ["hello"]:
                answer = name
            case ["list", _]:
                answer = " ".join(tasks)
            case ["time", task, threads, seconds] if task in tasks:
                set_threads(int(threads))
                answer = " ".join(f"{s:.4e}" for s in samples(ready(task), tasks[task][0], float(seconds)))
            case ["turns", first, second, threads, seconds] if first in tasks and second in tasks:
                set_threads(int(threads))
                answer = " ".join(f"{s:.4e}" for s in turns(ready(first), ready(second), float(seconds)))
            case ["first", task, threads] if task in tasks:
                set_threads(int(threads))
                answer = f"{latency(tasks[task][1]):.4e}"
            case ["memory", task, threads] if task in tasks:
                set_threads(int(threads))
                answer = str(peak(tasks[task][1]))
            case ["memory", threads] if memory:
                set_threads(int(threads))
                answer = str(memory())
            case _:
                answer = f"error: cannot read {line!r}"
        print(answer, flush=True)


def status(name):
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def reset_peak():
    """Starts a new measurement of the peak, and returns what is resident now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS:")
