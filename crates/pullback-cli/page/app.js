"use strict";
// The page of `pullback view`: draws what the engine says, and steps through it.

const $ = (id) => document.getElementById(id);
const escape = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
// A list may break between its numbers, a number nowhere.
const figures = (s) => escape(s).replace(/[^\s[\],;]+/g, (n) => `<span class="number">${n}</span>`);
const data = JSON.parse($("data").textContent);
const ROWS = 400; // More rows than this are shown in part.
const LARGE = 600; // Of more nodes than this only those in view are drawn.
const READABLE = 0.9; // A graph opens at this scale at least: its letters are 11 pixels high then.

let engine = null;
let shown = null; // What the engine said last.
let stages = []; // {node} for a forward step, {seed} for the start of the sweep, {arrow} for a contribution.
let steps = 0; // How many of them are forward steps.
let stage = 0;
let view = { x: 0, y: 0, w: 1, h: 1 };
let box = null; // The place on the page that the view was made for.
let timer = null;

// ---- the engine ----

async function start() {
  const text = $("engine").textContent.trim();
  if (text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    engine = (await WebAssembly.instantiate(bytes, {})).instance.exports;
  }
  $("expression").value = data.expression;
  grow();
  if (data.picture) {
    $("expression").readOnly = true;
    show(data.picture, true);
  } else {
    compute(true);
  }
  document.documentElement.dataset.ready = "true";
}

const narrow = () => window.matchMedia("(max-width: 800px)").matches;

function ask(expression, point, direction) {
  const bytes = new TextEncoder().encode([expression, point, direction].join("\0"));
  const at = engine.room(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  const answer = engine.run();
  return { direction, ...JSON.parse(new TextDecoder().decode(new Uint8Array(engine.memory.buffer, answer, engine.length()))) };
}

// How large the whole graph can be drawn.
function scaled(graph) {
  const box = $("graph").getBoundingClientRect();
  return Math.min(1.35, box.width / graph.width, box.height / graph.height);
}

const point = {}; // The text of the value of each input.
for (const part of data.point || []) point[part.name] = part.value;

function compute(fitted) {
  const text = Object.entries(point).map(([n, v]) => `${n}=${v}`).join(",");
  const first = shown && shown.direction && !fitted ? shown.direction : narrow() ? "down" : "right";
  let answer = ask($("expression").value, text, first);
  if (answer.error) return complain(answer.error);
  // If it gets small, the other way may fit better.
  if (fitted && answer.nodes.length < LARGE && scaled(answer) < 0.9) {
    const other = ask($("expression").value, text, first === "down" ? "right" : "down");
    if (scaled(other) > scaled(answer)) answer = other;
  }
  $("error").hidden = true;
  $("expression").removeAttribute("aria-invalid");
  show(answer, fitted);
}

function complain(error) {
  let text = error.message;
  if (error.span && error.of === "expression") {
    const source = new TextEncoder().encode($("expression").value);
    const before = new TextDecoder().decode(source.slice(0, error.span[0]));
    const line = before.lastIndexOf("\n") + 1;
    const whole = $("expression").value.slice(line).split("\n")[0];
    const count = Math.max(1, new TextDecoder().decode(source.slice(...error.span)).length);
    text += `\n  ${whole}\n  ${" ".repeat(before.length - line)}${"^".repeat(Math.min(count, whole.length + 1))}`;
  }
  if (error.help) text += `\n  ${error.help}`;
  $("error").textContent = text;
  $("error").hidden = false;
  $("expression").setAttribute("aria-invalid", "true");
}

// ---- a new answer ----

function show(answer, fitted) {
  const same = shown && shown.nodes.length === answer.nodes.length && shown.arrows.length === answer.arrows.length;
  const atEnd = stage === stages.length;
  shown = answer;
  stages = [];
  answer.nodes.forEach((n, k) => { if (n.operation !== "input") stages.push({ node: k }); });
  steps = stages.length;
  if (answer.outputs.length && answer.nodes[answer.outputs[0].node].adjoint !== null) stages.push({ seed: answer.outputs[0].node });
  answer.arrows.forEach((a, k) => { if (a.amount !== null) stages.push({ arrow: k }); });
  stage = atEnd || !same ? stages.length : Math.min(stage, stages.length);
  $("stage").max = stages.length;
  if (!same) inputs();
  drawn = null;
  if (fitted || !same) look(READABLE);
  draw();
  tell();
}

function inputs() {
  const box = $("inputs");
  const list = shown.inputs || [];
  box.innerHTML = list.map((input, k) => {
    const name = escape(input.name);
    if (input.shape.length) {
      return `<div class="input"><label for="in${k}">${name}</label><input id="in${k}" type="text" value="${escape(written(input))}"></div>`;
    }
    const v = input.values[0];
    const reach = input.counts ? Math.max(10, 2 * v) : Math.max(5, 2 * Math.abs(v));
    const low = input.counts ? 0 : -reach, step = input.counts ? 1 : "any";
    return `<div class="input"><label for="in${k}">${name}</label>
      <input id="in${k}" type="range" min="${low}" max="${reach}" step="${step}" value="${v}">
      <input id="nu${k}" type="number" step="any" value="${v}" aria-label="${name}"></div>`;
  }).join("");
  list.forEach((input, k) => {
    const slider = $(`in${k}`), number = $(`nu${k}`);
    point[input.name] = written(input);
    const set = (text) => { point[input.name] = text; compute(false); };
    slider.addEventListener("input", () => {
      if (input.shape.length) return set(slider.value);
      const v = Number(Number(slider.value).toPrecision(4));
      number.value = v;
      set(String(v));
    });
    if (number) number.addEventListener("input", () => {
      if (number.value === "" || !Number.isFinite(Number(number.value))) return;
      slider.min = Math.min(slider.min, number.value);
      slider.max = Math.max(slider.max, number.value);
      slider.value = number.value;
      set(number.value);
    });
  });
}

function written(input) {
  if (!input.shape.length) return String(input.values[0]);
  const columns = input.shape[1] || input.values.length, rows = [];
  for (let k = 0; k < input.values.length; k += columns) rows.push(input.values.slice(k, k + columns).join(","));
  return `[${rows.join(";")}]`;
}

// ---- the graph ----

function draw() {
  const { nodes, arrows } = shown;
  const parts = ['<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>'];
  const large = nodes.length > LARGE;
  const near = { x: view.x - view.w / 2, y: view.y - view.h / 2, w: 2 * view.w, h: 2 * view.h };
  drawn = large ? near : null;
  const inside = ([x, y]) => !large || (x > near.x && x < near.x + near.w && y > near.y && y < near.y + near.h);
  arrows.forEach((a, k) => {
    if (!inside(nodes[a.from].centre) && !inside(nodes[a.to].centre)) return;
    const [x, y] = middle(a.route, k);
    const text = a.amount === null ? "" : `<text x="${x}" y="${y - 3}">${escape(a.amount)}</text>`;
    parts.push(`<g class="arrow" id="a${k}"><path d="${curve(a.route)}"/>${text}</g>`);
  });
  nodes.forEach((n, k) => {
    if (!inside(n.centre)) return;
    const [x, y] = n.centre, [w, h] = n.size;
    const head = n.name + (n.formula ? ` = ${n.formula}` : "") + (n.given ? ` = ${n.given}` : "");
    parts.push(`<g class="node${n.operation === "input" ? " input" : ""}" id="n${k}" data-name="${escape(n.name)}">
      <rect x="${x - w / 2}" y="${y - h / 2}" width="${w}" height="${h}" rx="8"/>
      <text class="h" x="${x}" y="${y - 13}">${escape(head)}</text>
      <text class="v" x="${x}" y="${y + 5}">${escape(n.value ?? "")}</text>
      <text class="a" x="${x}" y="${y + 22}"></text></g>`);
  });
  $("graph").innerHTML = parts.join("");
  paint(true);
}

// What of a large graph is drawn goes with the view.
let drawn = null;
let redraw = 0;
function moved() {
  if (!drawn || redraw) return;
  const out = view.x < drawn.x || view.y < drawn.y || view.x + view.w > drawn.x + drawn.w || view.y + view.h > drawn.y + drawn.h;
  if (out || view.w < drawn.w / 6) redraw = requestAnimationFrame(() => { redraw = 0; draw(); });
}

// A curve through the points, flat at both ends.
function curve(p) {
  const down = shown.direction === "down";
  let d = `M${p[0]}`;
  for (let k = 1; k < p.length; k++) {
    const [a, b] = [p[k - 1], p[k]];
    const m = down ? (a[1] + b[1]) / 2 : (a[0] + b[0]) / 2;
    d += down ? `C${a[0]},${m} ${b[0]},${m} ${b}` : `C${m},${a[1]} ${m},${b[1]} ${b}`;
  }
  return d;
}

// Where the number on an arrow stands: at one of two places in turn, so that neighbours keep apart.
function middle(p, turn) {
  const k = Math.floor((p.length - 1) / 2), [a, b] = [p[k], p[k + 1]], t = turn % 2 ? 0.64 : 0.4;
  const start = (1 - t) ** 2 * (1 + 2 * t), flat = (i) => a[i] * start + b[i] * (1 - start);
  const along = (i) => (1 - t) ** 3 * a[i] + 3 * t * (1 - t) * (a[i] + b[i]) / 2 + t ** 3 * b[i];
  return shown.direction === "down" ? [flat(0), along(1)] : [along(0), flat(1)];
}

// What has arrived at a node after the first `to` stages.
const painted = { stage: 0, now: [], sums: new Map() };
function paint(all) {
  const set = (id, name, on) => { const e = $(id); if (e) e.classList.toggle(name, on); };
  const adjoint = (k, text) => { const e = $(`n${k}`); if (e) { e.querySelector(".a").textContent = text === null ? "" : `adj ${text}`; e.classList.toggle("quiet", text === null); } };
  if (all) {
    shown.nodes.forEach((n, k) => { set(`n${k}`, "later", n.operation !== "input"); adjoint(k, null); });
    shown.arrows.forEach((_, k) => set(`a${k}`, "done", false));
    painted.stage = 0;
    painted.sums = new Map();
  }
  while (painted.stage < stage) {
    const s = stages[painted.stage++];
    if (s.node !== undefined) set(`n${s.node}`, "later", false);
    if (s.seed !== undefined) arrive(s.seed, "1");
    if (s.arrow !== undefined) { set(`a${s.arrow}`, "done", true); arrive(shown.arrows[s.arrow].from, shown.arrows[s.arrow].sum); }
  }
  while (painted.stage > stage) {
    const s = stages[--painted.stage];
    if (s.node !== undefined) set(`n${s.node}`, "later", true);
    if (s.seed !== undefined) leave(s.seed);
    if (s.arrow !== undefined) { set(`a${s.arrow}`, "done", false); leave(shown.arrows[s.arrow].from); }
  }
  function arrive(k, text) { const list = painted.sums.get(k) || []; list.push(text); painted.sums.set(k, list); adjoint(k, text); }
  function leave(k) { const list = painted.sums.get(k); list.pop(); adjoint(k, list.length ? list[list.length - 1] : null); }
  if (!all) painted.now.forEach((id) => { set(id, "now", false); set(id, "back", false); });
  painted.now = [];
  const s = stages[stage - 1];
  if (!s || stage === stages.length) return;
  const back = s.node === undefined;
  const at = s.arrow === undefined ? s.node ?? s.seed : shown.arrows[s.arrow].from;
  set(`n${at}`, "now", true);
  set(`n${at}`, "back", back);
  painted.now.push(`n${at}`);
  if (s.arrow !== undefined) { set(`a${s.arrow}`, "now", true); painted.now.push(`a${s.arrow}`); }
  if (!all) follow(at);
}

// ---- words and tables ----

function tell() {
  const { nodes, arrows, outputs } = shown;
  $("stage").value = stage;
  $("count").textContent = stage === stages.length ? `done (${stages.length})` : stage <= steps ? `forward ${stage} / ${steps}` : `reverse ${stage - steps} / ${stages.length - steps}`;
  for (const id of ["first", "back"]) $(id).disabled = stage === 0;
  for (const id of ["next", "last"]) $(id).disabled = stage === stages.length;
  $("now").innerHTML = words();
  const rowOf = (cells, when) => `<tr class="${when < stage ? "" : "later"}${when === stage - 1 && stage < stages.length ? " current" : ""}">${cells}</tr>`;
  // Rows around the current one, of those that `row` writes.
  const cut = (count, current, row) => {
    const from = Math.max(0, Math.min(current - ROWS / 2, count - ROWS)), to = Math.min(count, from + ROWS);
    const note = (n, where) => (n > 0 ? `<tr class="later"><td colspan="4">${n} more ${where}</td></tr>` : "");
    let rows = note(from, "before");
    for (let k = from; k < to; k++) rows += row(k);
    return rows + note(count - to, "after");
  };
  const fixed = nodes.findIndex((n) => n.operation !== "input");
  const inputs = fixed < 0 ? nodes.length : fixed;
  $("forward").innerHTML = "<tr><th>step</th><th>formula</th><th>value</th></tr>" + cut(inputs + steps, inputs + stage, (k) => {
    const n = nodes[k < inputs ? k : stages[k - inputs].node];
    return rowOf(`<td>${escape(n.name)}${n.given ? ` = ${escape(n.given)}` : ""}</td><td>${escape(n.formula)}</td><td class="value">${figures(n.value ?? "")}</td>`, k - inputs);
  });
  $("reverse").innerHTML = "<tr><th>from → to</th><th>local derivative</th><th>adds</th><th>sum</th></tr>" + cut(stages.length - steps, stage - steps, (k) => {
    const s = stages[steps + k];
    if (s.seed !== undefined) return rowOf(`<td>${escape(nodes[s.seed].name)}</td><td>the output itself</td><td class="adjoint">1</td><td class="adjoint">1</td>`, steps + k);
    const a = arrows[s.arrow];
    const slope = a.slope === null || a.slope === a.rule ? "" : ` = ${figures(a.slope)}`;
    return rowOf(`<td>${escape(nodes[a.to].name)} → ${escape(nodes[a.from].name)}</td><td>${escape(a.rule)}${slope}</td><td class="adjoint">${figures(a.amount)}</td><td class="adjoint">${figures(a.sum)}</td>`, steps + k);
  });
  const output = outputs.length ? outputs[0].name : "y";
  const gradient = nodes.map((n, k) => [n, k]).filter(([n]) => n.operation === "input").slice(0, ROWS);
  $("gradient").innerHTML = gradient.map(([n, k]) => {
    const sums = painted.sums.get(k);
    const text = stage === stages.length ? n.adjoint ?? "0" : sums && sums.length ? sums[sums.length - 1] : "·";
    return `<tr><td>∂${escape(output)}/∂${escape(n.name)}</td><td class="adjoint">${figures(text)}</td></tr>`;
  }).join("");
}

function words() {
  const { nodes, arrows, outputs } = shown;
  const s = stages[stage - 1];
  const what = (t) => `<span class="what">${t}</span>`;
  if (!s) return what("The inputs have their values. Step on to compute.");
  if (stage === stages.length) {
    const o = outputs[0];
    return what("Everything is computed.") + (o ? `<code>${escape(o.name)} = ${escape(nodes[o.node].value ?? "")}</code>` : "");
  }
  if (s.node !== undefined) {
    const n = nodes[s.node];
    return what("Forward: a value") + `<code>${escape(n.name)} = ${escape(n.formula)} = ${escape(n.value ?? "")}</code>`;
  }
  if (s.seed !== undefined) return what("The sweep back starts at the output") + `<code>adj(${escape(nodes[s.seed].name)}) = 1</code>`;
  const a = arrows[s.arrow], [from, to] = [nodes[a.to].name, nodes[a.from].name];
  const slope = a.slope === null ? "" : ` = ${escape(nodes[a.to].adjoint)} · ${escape(a.slope)}`;
  return what(`Reverse: ${escape(from)} contributes to ${escape(to)}`) + `<code>adj(${escape(to)}) += adj(${escape(from)}) · (${escape(a.rule)})${slope} = ${escape(a.amount)}</code>`;
}

// ---- moving about ----

function go(to) {
  stage = Math.max(0, Math.min(stages.length, to));
  paint(false);
  tell();
}

function play() {
  if (timer) { clearInterval(timer); timer = null; $("play").textContent = "▶▶"; return; }
  if (stage === stages.length) go(0);
  $("play").textContent = "❚❚";
  timer = setInterval(() => { go(stage + 1); if (stage === stages.length) play(); }, 750);
}

function place() {
  $("graph").setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  moved();
}

// The graph at the scale at which it fits, but not below `least`: centred, or from its beginning along a side that does not fit.
function look(least) {
  box = $("graph").getBoundingClientRect();
  const scale = Math.max(least, scaled(shown));
  view.w = box.width / scale;
  view.h = box.height / scale;
  const start = (whole, seen) => Math.min(0, (whole - seen) / 2);
  view.x = start(shown.width, view.w);
  view.y = start(shown.height, view.h);
  place();
}

// All of it; a large graph as far as it can be drawn.
const fit = () => look(shown.nodes.length > LARGE ? 0.5 : 0);

function zoom(by, cx = 0.5, cy = 0.5) {
  const w = view.w / by, h = view.h / by;
  view.x += (view.w - w) * cx;
  view.y += (view.h - h) * cy;
  view.w = w;
  view.h = h;
  place();
}

// Brings a node into view, if it is not.
function follow(k) {
  const [x, y] = shown.nodes[k].centre;
  const inside = x > view.x + 0.1 * view.w && x < view.x + 0.9 * view.w && y > view.y + 0.1 * view.h && y < view.y + 0.9 * view.h;
  if (inside) return;
  view.x = x - view.w / 2;
  view.y = y - view.h / 2;
  place();
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
}

function grow() {
  const area = $("expression");
  area.rows = Math.min(8, area.value.split("\n").length);
}

document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("first").onclick = () => go(0);
$("back").onclick = () => go(stage - 1);
$("next").onclick = () => go(stage + 1);
$("last").onclick = () => go(stages.length);
$("play").onclick = play;
$("stage").oninput = () => go(Number($("stage").value));
$("theme").onclick = theme;
$("closer").onclick = () => zoom(1.25);
$("farther").onclick = () => zoom(0.8);
$("fit").onclick = fit;
let waiting = 0;
$("expression").addEventListener("input", () => {
  grow();
  clearTimeout(waiting);
  waiting = setTimeout(() => compute(true), 120);
});
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(TEXTAREA|INPUT)$/.test(e.target.tagName)) return;
  const keys = { ArrowRight: () => go(stage + 1), ArrowLeft: () => go(stage - 1), Home: () => go(0), End: () => go(stages.length), " ": play, t: theme, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit };
  if (!keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});
const picture = $("picture");
const fingers = new Map();
picture.addEventListener("pointerdown", (e) => { if (e.target.closest("button")) return; fingers.set(e.pointerId, e); picture.setPointerCapture(e.pointerId); });
picture.addEventListener("pointermove", (e) => {
  const before = fingers.get(e.pointerId);
  if (!before) return;
  const box = picture.getBoundingClientRect();
  if (fingers.size === 2) {
    const other = [...fingers.values()].find((f) => f.pointerId !== e.pointerId);
    const far = (f) => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
    zoom(far(e) / Math.max(1, far(before)), ((e.clientX + other.clientX) / 2 - box.left) / box.width, ((e.clientY + other.clientY) / 2 - box.top) / box.height);
  } else {
    view.x -= ((e.clientX - before.clientX) * view.w) / box.width;
    view.y -= ((e.clientY - before.clientY) * view.h) / box.height;
    place();
  }
  fingers.set(e.pointerId, e);
});
for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, (e) => fingers.delete(e.pointerId));
picture.addEventListener("wheel", (e) => {
  e.preventDefault();
  const box = picture.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * 0.0015), (e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height);
}, { passive: false });
// The same scale and corner in a place of another size, as when a message takes some of it.
new ResizeObserver(([{ contentRect: { width, height } }]) => {
  if (shown && box && width && height) {
    view.w *= width / box.width;
    view.h *= height / box.height;
    place();
  }
  box = { width, height };
}).observe($("graph"));
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width || !shown) return;
  width = window.innerWidth;
  if (engine && !data.picture) compute(true);
  else look(READABLE);
});
start();
