// The HTML view of a trace. Data comes from toolkit/render/timeline/html.py: columns of spans, lanes, totals by op.
// Bars are drawn on a canvas, those of a row that fall on one pixel as one, so that large traces stay fluent.
const ROW = 18, GAP = 6, DEVICE = 20, AXIS = 24, LEFT = 150, RIGHT = 12;
let D, S, theme, colours, order, tops = [], height = 0;
let view = { from: 0, to: 1 }, selected = -1, chosenOp = -1, found = null, at = 0;

async function start() {
  D = await unpack($("data").textContent.trim()); S = D.spans;
  D.length = Math.max(D.length, 1e-3);
  for (const name of Object.keys(D.themes)) $("theme").add(new Option(name, name, false, name === D.theme));
  if (D.theme === "light" && matchMedia("(prefers-color-scheme: dark)").matches) $("theme").value = "dark";
  $("summary").textContent = `${S.start.length.toLocaleString("en")} node runs in ${time(D.length)}; ${D.lanes.length} thread${D.lanes.length > 1 ? "s" : ""}`;
  lay(); listen(); dyeAll(); fit(); totals();
  document.body.dataset.ready = "yes";
}
const text = (index) => D.strings[index];

// Rows: one entry { y, spans (in order), lane } for each, from top to bottom.
function lay() {
  let y = AXIS, device = null;
  order = [];
  D.lanes.forEach((lane, number) => {
    if (lane.device !== device) { y += DEVICE; device = lane.device; } else y += GAP;
    lane.top = y;
    for (let r = 0; r < lane.rows; r++, y += ROW) order.push({ y, lane: number, row: r, spans: [] });
  });
  height = y + 10;
  const first = []; let n = 0;
  for (const lane of D.lanes) { first.push(n); n += lane.rows; }
  for (let k = 0; k < S.start.length; k++) order[S.home[k] = first[S.lane[k]] + S.row[k]].spans.push(k);
  S.place = new Int32Array(S.start.length);
  for (const row of order) row.spans.forEach((k, n) => { S.place[k] = n; });
}

// -- looks ----------------------------------------------------------------------------------------------

function dyeAll() {
  theme = D.themes[$("theme").value];
  dye(theme);
  const many = theme.distinct.length - 1;
  colours = D.totals.map((_, n) => (n < many ? theme.distinct[n] : theme.distinct[many]));
}
function fill(k) {
  if ($("color").value === "time") return colours[S.op[k]];
  const steps = theme.scale.length;
  return theme.scale[D.most ? Math.min(steps - 1, Math.round(Math.sqrt(S.memory[k] / D.most) * (steps - 1))) : 0];
}
const dimmed = (k) => (chosenOp >= 0 && S.op[k] !== chosenOp) || (found && !found.has(k));

function surface(id, w, h) {
  const canvas = $(id), ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); canvas.style.height = h + "px";
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, w, h);
  return g;
}
const width = () => $("scroller").clientWidth;
const scale = () => (width() - LEFT - RIGHT) / (view.to - view.from);
const xOf = (t) => LEFT + (t - view.from) * scale();
const tOf = (x) => view.from + (x - LEFT) / scale();

let asked = false;
function draw() { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; paint(); }); } }
function paint() {
  const w = width(), g = surface("chart", w, Math.max(height, $("scroller").clientHeight)), k = scale(), begun = performance.now();
  g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
  for (const t of ticks()) {
    const x = xOf(t);
    g.fillStyle = theme.cluster_border; g.fillRect(x, AXIS - 6, 0.6, height - AXIS);
    g.fillStyle = theme.muted; g.textAlign = "center"; g.fillText(time(t), x, 9);
  }
  g.textAlign = "left";
  let device = null;
  for (const lane of D.lanes) {
    if (lane.device !== device) { device = lane.device; g.fillStyle = theme.ink; g.fillText(lane.short, 8, lane.top - 10); }
    g.fillStyle = theme.clusters[0]; g.fillRect(LEFT, lane.top, w - LEFT - RIGHT, lane.rows * ROW);
    g.fillStyle = theme.muted; g.fillText(fitText(g, /^\d+$/.test(lane.thread) ? "thread " + lane.thread : lane.thread, LEFT - 16), 8, lane.top + ROW / 2);
  }
  g.save(); g.beginPath(); g.rect(LEFT, 0, w - LEFT - RIGHT, height); g.clip();
  for (const row of order) {
    let edge = -1e9;
    for (let n = firstIn(row); n < row.spans.length; n++) {
      const s = row.spans[n];
      if (S.start[s] > view.to) break;
      const x = xOf(S.start[s]), right = x + S.duration[s] * k;
      if (right < edge + 0.7 && !(found && found.has(s)) && s !== selected) continue;   // under the pixel of the one before
      edge = Math.max(right, x + 0.7);
      const size = Math.max(0.7, right - x);
      g.globalAlpha = dimmed(s) ? 0.15 : 1;
      g.fillStyle = fill(s); g.fillRect(x, row.y + 1, size, ROW - 2);
      if (size > 3) { g.strokeStyle = theme.border; g.lineWidth = 0.5; g.strokeRect(x, row.y + 1, size, ROW - 2); }
      if (size > 24) {
        const shown = Math.max(x, LEFT);
        g.fillStyle = theme.ink; g.fillText(fitText(g, short(s), right - shown - 6), shown + 3, row.y + ROW / 2 + 0.5);
      }
    }
  }
  g.globalAlpha = 1;
  if (selected >= 0) {
    const row = order[S.home[selected]], x = xOf(S.start[selected]);
    g.strokeStyle = theme.strong; g.lineWidth = 2; g.strokeRect(x - 1, row.y, Math.max(3, S.duration[selected] * k + 2), ROW);
  }
  g.restore();
  overview();
  document.body.dataset.view = `${view.from} ${view.to}`;
  document.body.dataset.drawMs = String(Math.round(performance.now() - begun));
}
const short = (s) => { const name = text(S.name[s]); return name.slice(name.lastIndexOf("/") + 1) || name; };
function fitText(g, label, room) {
  if (room < 8) return "";
  if (g.measureText(label).width <= room) return label;
  let n = Math.floor(room / 6);
  while (n > 1 && g.measureText(label.slice(0, n) + "…").width > room) n--;
  return n > 1 ? label.slice(0, n) + "…" : "";
}
// The first span of a row that may reach into the view; spans of a row do not overlap.
function firstIn(row) {
  let low = 0, high = row.spans.length;
  while (low < high) { const m = (low + high) >> 1, s = row.spans[m]; if (S.start[s] + S.duration[s] < view.from) low = m + 1; else high = m; }
  return low;
}
function ticks() {
  const span = view.to - view.from, found_ = [];
  let step = 1e-4;
  for (const f of (function* () { for (;;) yield* [2, 2.5, 2]; })()) { if (span / step <= 9) break; step *= f; }
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) found_.push(t);
  return found_;
}
let density = null;
function overview() {
  const w = $("overview").clientWidth, h = 44, g = surface("overview", w, h), inner = w - LEFT - RIGHT;
  if (!density || density.length !== Math.round(inner)) {
    density = new Float32Array(Math.max(1, Math.round(inner)));
    const cell = D.length / density.length;
    for (let s = 0; s < S.start.length; s++) {
      const a = S.start[s] / cell, b = (S.start[s] + S.duration[s]) / cell;
      for (let c = Math.floor(a); c <= b && c < density.length; c++) density[c] += Math.min(b, c + 1) - Math.max(a, c);
    }
  }
  const most = density.reduce((m, v) => Math.max(m, v), 1e-9);
  g.font = "11px system-ui, sans-serif"; g.fillStyle = theme.muted; g.fillText("at work", 8, h / 2 + 4);
  g.fillStyle = theme.data;
  density.forEach((v, c) => { const tall = (v / most) * (h - 10); g.fillRect(LEFT + c, h - 4 - tall, 1, tall); });
  const a = LEFT + (view.from / D.length) * inner, b = LEFT + (view.to / D.length) * inner;
  g.fillStyle = theme.strong; g.globalAlpha = 0.15; g.fillRect(a, 0, b - a, h); g.globalAlpha = 1;
  g.strokeStyle = theme.strong; g.strokeRect(a + 0.5, 0.5, Math.max(2, b - a - 1), h - 1);
}

// -- texts ----------------------------------------------------------------------------------------------

function time(us) {
  for (const [limit, unit] of [[1e6, " s"], [1e3, " ms"], [1, " µs"]]) if (Math.abs(us) >= limit) return +(us / limit).toPrecision(4) + unit;
  return us ? +(us * 1e3).toPrecision(3) + " ns" : "0 µs";
}
function bytes(n) {
  for (const [limit, unit] of [[1e9, " GB"], [1e6, " MB"], [1e3, " kB"]]) if (n >= limit) return (n / limit).toPrecision(3) + unit;
  return n + " B";
}
function linesOf(s) {
  const lane = D.lanes[S.lane[s]];
  return [["op", D.totals[S.op[s]].op], ["time", time(S.duration[s])], ["from", time(S.start[s])], ["memory", S.memory[s] ? bytes(S.memory[s]) : ""],
    ["device", lane.device], ["thread", lane.thread], ...text(S.notes[s]).split("\n").filter(Boolean).map((note) => ["", note])];
}
function details() {
  const holder = $("details");
  holder.replaceChildren();
  if (selected < 0) { const p = document.createElement("p"); p.className = "hint"; p.textContent = "Nothing is selected."; holder.append(p); return; }
  const name = document.createElement("div"), list = document.createElement("dl");
  name.className = "name"; name.textContent = text(S.name[selected]);
  for (const [key, value] of linesOf(selected)) if (value !== "") { const t = document.createElement("dt"), d = document.createElement("dd"); t.textContent = key; d.textContent = value; list.append(t, d); }
  const runs = []; for (let s = 0; s < S.name.length; s++) if (S.name[s] === S.name[selected]) runs.push(S.duration[s]);
  if (runs.length > 1) { const t = document.createElement("dt"), d = document.createElement("dd"); t.textContent = "all runs"; d.textContent = `${runs.length} in ${time(runs.reduce((a, b) => a + b, 0))}`; list.append(t, d); }
  holder.append(name, list);
}
function totals() {
  const body = $("totals").querySelector("tbody");
  body.replaceChildren();
  D.totals.forEach((total, n) => {
    const row = document.createElement("tr"), cells = [0, 1, 2, 3].map(() => document.createElement("td")), b = document.createElement("button"), sw = document.createElement("span");
    sw.className = "swatch"; sw.style.background = colours[n]; b.append(sw, total.op);
    b.setAttribute("aria-pressed", String(n === chosenOp));
    b.onclick = () => { chosenOp = chosenOp === n ? -1 : n; totals(); draw(); };
    cells[0].append(b); cells[1].textContent = total.count.toLocaleString("en"); cells[2].textContent = time(total.time); cells[3].textContent = (total.share * 100).toFixed(1) + "%";
    row.append(...cells); body.append(row);
  });
}

// -- moving about ---------------------------------------------------------------------------------------

function show(from, to) {
  const least = Math.max(D.length * 1e-6, 1e-3), size = Math.min(D.length, Math.max(least, to - from));
  from = Math.max(0, Math.min(D.length - size, from));
  view = { from, to: from + size }; draw();
}
function fit() { show(0, D.length); }
function zoom(factor, t = (view.from + view.to) / 2) { show(t - (t - view.from) / factor, t + (view.to - t) / factor); }
function select(s, center = true) {
  selected = s; details();
  if (s >= 0 && center) {
    const middle = S.start[s] + S.duration[s] / 2, half = (view.to - view.from) / 2;
    if (middle < view.from || middle > view.to) show(middle - half, middle + half);
    const y = order[S.home[s]].y, box = $("scroller");
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - ROW) box.scrollTop = y - box.clientHeight / 2;
  }
  draw();
}
function spanAt(x, y) {
  const row = order.find((r) => y >= r.y && y < r.y + ROW);
  if (!row || x < LEFT) return -1;
  const t = tOf(x), slack = 2 / scale();
  let best = -1, distance = Infinity;
  for (let n = firstIn(row); n < row.spans.length; n++) {
    const s = row.spans[n];
    if (S.start[s] > t + slack) break;
    const d = Math.max(S.start[s] - t, t - S.start[s] - S.duration[s], 0);
    if (d <= slack && d < distance) { best = s; distance = d; }
  }
  return best;
}
function along(step) {
  if (selected < 0) return select(order[0].spans[0]);
  const next = order[S.home[selected]].spans[S.place[selected] + step];
  if (next !== undefined) select(next);
}
function across(step) {
  if (selected < 0) return select(order[0].spans[0]);
  const row = order[S.home[selected] + step], t = S.start[selected];
  if (!row) return;
  let best = row.spans[0];
  for (const s of row.spans) if (Math.abs(S.start[s] - t) < Math.abs(S.start[best] - t)) best = s;
  select(best);
}
function search() {
  const query = $("search").value.trim().toLowerCase();
  found = null; at = -1;
  if (query) {
    found = new Set();
    let sum = 0;
    for (let s = 0; s < S.start.length; s++)
      if (text(S.name[s]).toLowerCase().includes(query) || D.totals[S.op[s]].op.toLowerCase().includes(query)) { found.add(s); sum += S.duration[s]; }
    say(`${found.size} found, ${time(sum)}`);
  } else say("");
  draw();
}
function nextMatch() { if (found?.size) { const all = [...found]; at = (at + 1) % all.length; select(all[at]); } }

function listen() {
  const chart = $("chart"), tip = $("tip");
  let drag = null;
  const spot = (e) => { const r = chart.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  chart.addEventListener("wheel", (e) => {
    if (e.shiftKey) { const d = (e.deltaY || e.deltaX) / scale(); show(view.from + d, view.to + d); }
    else zoom(Math.exp(-e.deltaY * 0.002), tOf(spot(e)[0]));
    e.preventDefault();
  }, { passive: false });
  chart.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, from: view.from, to: view.to, moved: false }; });
  window.addEventListener("pointermove", (e) => {
    if (drag) {
      const d = (e.clientX - drag.x) / scale();
      if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
      if (drag.moved) show(drag.from - d, drag.to - d);
      tip.hidden = true;
      return;
    }
    const s = e.target === chart ? spanAt(...spot(e)) : -1;
    tip.hidden = s < 0;
    if (s >= 0) {
      tip.textContent = [text(S.name[s]), ...linesOf(s).filter((l) => l[1] !== "").map(([key, value]) => (key ? `${key}: ${value}` : value))].join("\n");
      tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
    }
  });
  window.addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); });
  chart.addEventListener("click", (e) => { if (!drag?.moved) select(spanAt(...spot(e)), false); });
  chart.addEventListener("dblclick", (e) => { const s = spanAt(...spot(e)); if (s >= 0) show(S.start[s] - S.duration[s], S.start[s] + 2 * S.duration[s]); });
  $("overview").addEventListener("pointerdown", (e) => {
    const r = $("overview").getBoundingClientRect(), t = ((e.clientX - r.left - LEFT) / (r.width - LEFT - RIGHT)) * D.length, half = (view.to - view.from) / 2;
    show(t - half, t + half);
  });
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (e) => {
    if (e.key === "Enter") nextMatch();
    else if (e.key === "Escape") { $("search").value = ""; search(); chart.focus(); }
    e.stopPropagation();
  });
  $("theme").onchange = () => { dyeAll(); totals(); draw(); };
  $("color").onchange = draw;
  $("fit").onclick = fit; $("zoom-in").onclick = () => zoom(1.5); $("zoom-out").onclick = () => zoom(1 / 1.5);
  $("help-button").onclick = help;
  window.addEventListener("resize", draw);
  document.addEventListener("keydown", (e) => {
    if (e.target.matches("input, select") || e.ctrlKey || e.metaKey || e.altKey) return;
    const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
    const run = {
      "/": () => $("search").focus(), "?": help, "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": fit,
      a: () => move(-0.25), d: () => move(0.25), z: () => selected >= 0 && show(S.start[selected] - S.duration[selected], S.start[selected] + 2 * S.duration[selected]),
      ArrowLeft: () => along(-1), ArrowRight: () => along(1), ArrowUp: () => across(-1), ArrowDown: () => across(1),
      Escape: () => { $("help").hidden = true; found = null; chosenOp = -1; $("search").value = ""; say(""); select(-1); totals(); },
    }[e.key];
    if (run) { run(); e.preventDefault(); }
  });
}
start().catch(cannotBeShown);
