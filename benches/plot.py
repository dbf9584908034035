"""Line plots as SVG, with logarithmic axes."""

import math

COLOURS = ["#1f6fb4", "#d2691e", "#2e8b57", "#8b3a8b", "#b22222", "#555555"]
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50


def label(value):
    """A power of ten, or a short number."""
    exponent = round(math.log10(value)) if value > 0 else 0
    if value > 0 and math.isclose(value, 10**exponent) and not -2 <= exponent <= 3:
        return f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'
    return f"{value:g}"


def ticks(low, high, logarithmic):
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        found = [10.0**k for k in range(first, last + 1)]
        return found if len(found) > 2 else sorted(found + [2 * t for t in found] + [5 * t for t in found])
    step = 10 ** math.floor(math.log10(high))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if high / s <= 6)
    return [k * step for k in range(int(high / step) + 2)]


def lines(title, across, up, series, log_up=True):
    """The text of a plot. `series` maps a name to points (x, y); `across` and `up` name the axes."""
    points = [point for line in series.values() for point in line]
    xs = ticks(min(x for x, _ in points), max(x for x, _ in points), True)
    ys = ticks(min(y for _, y in points), max(y for _, y in points), log_up)
    scale = lambda v, t, log: (math.log(v / t[0]) / math.log(t[-1] / t[0])) if log else (v - t[0]) / (t[-1] - t[0])
    x_of = lambda v: LEFT + (WIDTH - LEFT - RIGHT) * scale(v, xs, True)
    y_of = lambda v: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale(v, ys, log_up)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>']
    for t in xs:
        out.append(f'<line x1="{x_of(t):.1f}" x2="{x_of(t):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        out.append(f'<text x="{x_of(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label(t)}</text>')
    for t in ys:
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(t):.1f}" y2="{y_of(t):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y_of(t) + 4:.1f}" text-anchor="end">{label(t)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{across}</text>')
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{up}</text>')
    for k, (name, line) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        out.append(f'<text x="{LEFT + 10}" y="{TOP + 16 + 16 * k}" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def bars(title, up, rows):
    """The text of a plot of horizontal bars around 1, on a logarithmic scale. `rows` are (name, value)."""
    height = TOP + 18 * len(rows) + BOTTOM
    marks = ticks(min(0.1, *(v for _, v in rows)), max(1.0, *(v for _, v in rows)), True)
    left = 260
    x_of = lambda v: left + (WIDTH - left - RIGHT) * math.log(v / marks[0]) / math.log(marks[-1] / marks[0])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>']
    for t in marks:
        out.append(f'<line x1="{x_of(t):.1f}" x2="{x_of(t):.1f}" y1="{TOP - 8}" y2="{height - BOTTOM}" '
                   f'stroke="{"#555" if t == 1 else "#ddd"}"/>')
        out.append(f'<text x="{x_of(t):.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{label(t)}</text>')
    for k, (name, value) in enumerate(rows):
        y, ends = TOP + 18 * k, sorted([x_of(1), x_of(value)])
        colour = COLOURS[2] if value <= 1 else COLOURS[4]
        out.append(f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{name}</text>')
        out.append(f'<rect x="{ends[0]:.1f}" y="{y}" width="{max(ends[1] - ends[0], 1):.1f}" height="13" fill="{colour}"/>')
    out.append(f'<text x="{(left + WIDTH - RIGHT) / 2}" y="{height - 12}" text-anchor="middle">{up}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
