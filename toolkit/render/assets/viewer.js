"use strict";
// The HTML view of a graph. Data comes from toolkit/render/html.py: columns of elements, scopes and links (see there).
// Opening and closing a scope makes a new scene (what is visible) and lays it out with Graphviz, as the still
// pictures are.
(() => {
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const MOST_RESULTS = 60, LABEL = 30, LINE = 34, MOST_LINES = 4, HUB = 12, NOOP_HUB = 3, LEAST_ARCS = 120, ARCS_PER_BOX = 2;
// With more arcs than this, routing curves takes seconds; straight lines and fewer rounds of placing take 0.1 s.
const MANY_ARCS = 130, QUICK = "splines=line nslimit=1 nslimit1=1 mclimit=0.3";
const SHAPES = {
  op: ["box", "rounded,filled", 1], input: ["ellipse", "filled", 1], output: ["ellipse", "filled", 1],
  variable: ["cylinder", "filled", 1], constant: ["note", "filled", 1], scope: ["box", "rounded,filled,bold", 1],
  section: ["tab", "filled", 1], series: ["box", "filled", 3], function: ["component", "filled", 1],
  loop: ["box", "rounded,filled,bold", 2], partition: ["box3d", "filled", 1], aside: ["box", "rounded,filled,dashed", 1],
};
const DATA = 0, CONTROL = 1, REFERENCE = 2;
let D, E, S, L, graphviz;      // data, its elements, scopes and links, the layout engine
let opened, first, scene, selected = null, startOfPath = null, traced = null, mode, theme;
let view = { x: 0, y: 0, k: 1 }, size = { w: 1, h: 1 };
let members = null;            // per scope: its elements, absorbed ones too

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function start() {
  const url = URL.createObjectURL(new Blob([$("layout").textContent], { type: "text/javascript" }));
  const [library, data] = await Promise.all([import(url), unpack($("data").textContent.trim())]);
  graphviz = await library.Graphviz.load();
  D = data; E = D.elements; S = D.scopes; L = D.links;
  prepare();
  opened = new Set(D.opened); first = new Set(D.opened);
  fill($("color"), Object.keys(D.modes), D.mode);
  fill($("theme"), Object.keys(D.themes),
    D.theme === "light" && matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : D.theme);
  mode = $("color").value; theme = D.themes[$("theme").value];
  listen();
  if (D.path) traced = new Set(D.path);
  draw(true);
  if (D.focused >= 0 && !location.hash) reveal(D.focused);
  goToAddress();
  document.body.dataset.ready = "yes";
}

function fill(select, names, chosen) {
  for (const name of names) select.add(new Option(name, name, false, name === chosen));
}

const text = (index) => D.strings[index];
const nameOf = (i) => E.name[i];
const labelOf = (i) => E.name[i].slice(-E.label[i]);

function prepare() {
  S.kids = S.parent.map(() => []); S.own = S.parent.map(() => []);
  S.parent.forEach((p, s) => { if (p >= 0) S.kids[p].push(s); });
  E.host = new Int32Array(E.name.length).fill(-1);
  D.host[0].forEach((i, n) => { E.host[i] = D.host[1][n]; });
  E.noted = new Uint8Array(E.name.length);
  for (const i of D.noted) E.noted[i] = 1;
  for (let i = 0; i < E.name.length; i++) if (E.host[i] < 0) S.own[E.scope[i]].push(i);
  S.isFunction = S.kind.map((k) => text(k) === "function");
  S.aside = S.parent.map((p, s) => (p < 0 ? s === D.asideRoot : false));
  S.parent.forEach((p, s) => { if (p >= 0 && S.aside[p]) S.aside[s] = true; });   // parents come first
  E.out = null;
}

// -- links of an element, found once when first asked for -----------------------------------------------

function adjacency() {
  if (E.out) return;
  const n = E.name.length, count = L.src.length;
  E.out = new Int32Array(n + 1); E.in = new Int32Array(n + 1);
  for (let k = 0; k < count; k++) { E.out[L.src[k] + 1]++; E.in[L.dst[k] + 1]++; }
  for (let i = 0; i < n; i++) { E.out[i + 1] += E.out[i]; E.in[i + 1] += E.in[i]; }
  E.outs = new Int32Array(count); E.ins = new Int32Array(count);
  const o = E.out.slice(), p = E.in.slice();
  for (let k = 0; k < count; k++) { E.outs[o[L.src[k]]++] = k; E.ins[p[L.dst[k]]++] = k; }
}
const outLinks = (i) => (adjacency(), E.outs.subarray(E.out[i], E.out[i + 1]));
const inLinks = (i) => (adjacency(), E.ins.subarray(E.in[i], E.in[i + 1]));

// -- what is visible ------------------------------------------------------------------------------------
// A box is "e<number>" (an element) or "s<number>" (a closed scope); an open scope is "c<number>".

function makeScene() {
  const open = (s) => opened.has(s);
  const rep = new Int32Array(S.parent.length);   // the outermost closed scope around, or -1
  const boxes = new Map(), clusters = [];
  S.parent.forEach((p, s) => { rep[s] = p < 0 ? -1 : rep[p] >= 0 ? rep[p] : open(s) || p < 0 ? -1 : s; });
  if (D.asideRoot >= 0) for (const s of S.kids[D.asideRoot]) if (!open(s)) rep[s] = s;
  S.parent.forEach((p, s) => {
    if (rep[s] === s) boxes.set("s" + s, { id: "s" + s, scope: s, parent: p, kind: text(S.kind[s]), tags: [] });
    else if (rep[s] < 0) {
      clusters.push(s);
      for (const i of S.own[s]) {
        if (i === S.lead[s] && S.isFunction[s]) continue;
        boxes.set("e" + i, { id: "e" + i, element: i, parent: s, kind: text(E.kind[i]), tags: [] });
      }
    }
  });
  // Owners as numbers, because there is one for every element of what may be a large graph: elements count from
  // `base` up, closed scopes have odd and open ones even numbers below it.
  const base = 2 * S.parent.length, codes = new Int32Array(E.name.length), side = new Uint8Array(E.name.length);
  for (let n = 0; n < codes.length; n++) {
    const i = E.host[n] >= 0 ? E.host[n] : n, s = E.scope[i], r = rep[s];
    codes[n] = r >= 0 ? 2 * r + 1 : i === S.lead[s] && S.isFunction[s] ? 2 * s : base + i;
    side[n] = !S.aside[s] ? 0 : r >= 0 && S.parent[r] === D.asideRoot ? 2 : 1;
  }
  const idOf = (code) => (code >= base ? "e" + (code - base) : (code % 2 ? "s" : "c") + (code >> 1));
  const owner = (i) => idOf(codes[i]);
  const encloses = (c, id) => {
    if (c[0] !== "c") return false;
    const want = +c.slice(1);
    let s = id[0] === "e" ? E.scope[+id.slice(1)] : S.parent[+id.slice(1)];
    while (s >= 0) { if (s === want) return true; s = S.parent[s]; }
    return false;
  };
  const arcs = new Map(), span = base + codes.length;
  for (let k = 0; k < L.src.length; k++) {
    const src = L.src[k], dst = L.dst[k], a = codes[src], b = codes[dst];
    if (a === b || E.noted[src] || E.noted[dst] || side[src] !== side[dst] || side[src] === 2) continue;
    const key = (a * span + b) * 3 + L.kind[k];
    const arc = arcs.get(key);
    if (arc) arc.links.push(k);
    else if (arc === undefined) {
      const from = idOf(a), to = idOf(b);
      arcs.set(key, encloses(from, to) || encloses(to, from) ? null : { src: from, dst: to, kind: L.kind[k], links: [k], id: "a" + arcs.size });
    }
  }
  let list = [...arcs.values()].filter(Boolean);
  const hubs = findHubs(boxes, list);
  for (const [hub] of hubs) boxes.delete(hub);
  list = list.filter((arc) => {
    if (!hubs.has(arc.src) && !hubs.has(arc.dst)) return true;
    const other = boxes.get(hubs.has(arc.src) ? arc.dst : arc.src);
    // A NoOp that nobody named only orders side effects; its name says nothing.
    if (other && hubs.has(arc.src) && !/^(.*\/)?NoOp(_\d+)?$/.test(hubs.get(arc.src))) other.tags.push(hubs.get(arc.src));
    return false;
  });
  const dataTo = new Set(list.filter((a) => a.kind === DATA).map((a) => a.src + " " + a.dst));
  list = list.filter((a) => a.kind !== CONTROL || !dataTo.has(a.src + " " + a.dst));
  const joined = new Set(list.flatMap((a) => [a.src, a.dst]));
  const alone = [...boxes.values()].filter((b) => (b.id[0] === "e" || b.kind === "variable") && !joined.has(b.id) && !S.aside[b.parent]);
  // Variables that only the optimizer, the saver and the like use are no part of the picture either.
  const unconnected = alone.length < boxes.size / 2 ? alone.filter((b) => alone.length > 3 || (b.kind === "variable" && D.asideRoot >= 0)) : [];
  for (const b of unconnected) boxes.delete(b.id);
  const drawn = thin(list, boxes.size);
  return { boxes, clusters, arcs: drawn, thinned: list.length - drawn.length, owner, hubs, unconnected };
}

// As in scene.py: of too many arcs, every box keeps its strongest.
function thin(arcs, boxes) {
  const most = Math.max(LEAST_ARCS, ARCS_PER_BOX * boxes);
  if (arcs.length <= most) return arcs;
  const kept = new Set(), degree = new Map(), of = (id) => degree.get(id) ?? 0;
  for (const arc of [...arcs].sort((a, b) => (a.kind === CONTROL) - (b.kind === CONTROL) || b.links.length - a.links.length)) {
    if (kept.size < most && Math.min(of(arc.src), of(arc.dst)) < ARCS_PER_BOX) {
      kept.add(arc);
      for (const id of [arc.src, arc.dst]) degree.set(id, of(id) + 1);
    }
  }
  return arcs.filter((arc) => kept.has(arc));
}

function findHubs(boxes, arcs) {
  const near = new Map(), steers = new Map(), outOnly = new Map();
  for (const arc of arcs) for (const [id, other] of [[arc.src, arc.dst], [arc.dst, arc.src]]) {
    if (id[0] !== "e") continue;
    if (!near.has(id)) { near.set(id, new Set()); steers.set(id, true); outOnly.set(id, true); }
    near.get(id).add(other);
    const scalar = id === arc.src && text(L.shape[arc.links[0]]) === "scalar";
    if (arc.kind !== CONTROL && !scalar) steers.set(id, false);
    if (id !== arc.src) outOnly.set(id, false);
  }
  const hubs = new Map();
  for (const [id, others] of near) {
    const i = +id.slice(1);
    const limit = text(E.op[i]) !== "NoOp" ? HUB : outOnly.get(id) ? 0 : NOOP_HUB;
    if (others.size > limit && steers.get(id) && boxes.has(id)) hubs.set(id, labelOf(i));
  }
  return hubs;
}

function membersOf(s) {
  if (!members) {
    members = S.parent.map(() => null);
    const add = (i, s0) => { for (let s1 = s0; s1 >= 0; s1 = S.parent[s1]) (members[s1] ??= []).push(i); };
    for (let i = 0; i < E.name.length; i++) add(i, E.scope[E.host[i] >= 0 ? E.host[i] : i]);
  }
  return members[s] ?? [];
}

// -- colours --------------------------------------------------------------------------------------------

function fillOf(box) {
  const m = D.modes[mode], palette = m.fills[$("theme").value];
  if (m.scopeOf) return [[box.scope !== undefined && m.scopeOf[box.scope] >= 0 ? palette[m.scopeOf[box.scope]] : theme.background, 1]];
  if (box.element !== undefined) return [[palette[m.of[box.element]] ?? theme.background, 1]];
  if (m.plain && box.kind !== "variable") return [[theme.scope, 1]];
  const counts = new Map();
  if (m.amount) {
    const sum = membersOf(box.scope).reduce((t, i) => t + m.amount[i], 0);
    return [[palette[level(sum, m, palette.length)], 1]];
  }
  if (box.kind === "variable") return [[palette[m.of[S.lead[box.scope]]] ?? theme.scope, 1]];
  for (const i of membersOf(box.scope)) counts.set(m.of[i], (counts.get(m.of[i]) ?? 0) + 1);
  if (counts.size > 1 && m.none !== undefined) counts.delete(m.none);
  const parts = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 4), total = parts.reduce((t, p) => t + p[1], 0);
  return parts.map(([key, n]) => [palette[key] ?? theme.background, n / total]);
}
const level = (value, m, steps) => (m.top > 0 ? Math.min(steps - 1, Math.round(Math.sqrt(value / m.top) * (steps - 1))) : 0);

// -- DOT ------------------------------------------------------------------------------------------------

const quote = (t) => '"' + t.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n") + '"';
const escape = (t) => t.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
function ellipsize(t, length) {
  if (t.length <= length) return t;
  const head = Math.floor((length - 1) / 3);
  return t.slice(0, head) + "…" + t.slice(t.length - (length - 1 - head));
}

function boxLabel(box) {
  const isScope = box.scope !== undefined;
  const title = escape(ellipsize(isScope ? text(S.label[box.scope]) : labelOf(box.element), LABEL)) || " ";
  let lines = text(isScope ? S.lines[box.scope] : E.lines[box.element]).split("\n").filter(Boolean);
  lines = [...overlayLines(box), ...lines];
  if (lines.length > MOST_LINES) lines = [...lines.slice(0, MOST_LINES - 1), `+ ${lines.length - MOST_LINES + 1} more`];
  for (const tag of box.tags.slice(0, 2)) lines.push("from " + tag);
  const small = lines.map((l) => `<BR/><FONT POINT-SIZE="9" COLOR="${theme.muted}">${escape(ellipsize(l, LINE))}</FONT>`);
  return (isScope && box.kind !== "variable" ? `<B>${title}</B>` : title) + small.join("");
}

// What the colouring says in words: what changed, what was measured.
function overlayLines(box) {
  const m = D.modes[mode], all = box.scope !== undefined ? membersOf(box.scope) : [box.element];
  if (m.amount) { const sum = all.reduce((t, i) => t + m.amount[i], 0); return sum > 0 ? [amount(sum, m.unit)] : []; }
  if (!m.notes) return [];
  if (box.scope === undefined) return m.keys[m.of[box.element]] === "same" ? [] : [m.keys[m.of[box.element]], ...(m.notes[box.element] ?? [])];
  const counts = m.keys.map((key, n) => [key, all.filter((i) => m.of[i] === n).length]).filter(([key, n]) => n && key !== "same");
  return counts.length ? [counts.map(([key, n]) => `${n} ${key}`).join(", ")] : [];
}

function clusterFill(s, depth) {
  const m = D.modes[mode];
  return m.scopeOf && m.scopeOf[s] >= 0 ? m.fills[$("theme").value][m.scopeOf[s]] : theme.clusters[depth % theme.clusters.length];
}

function toDot(scene) {
  const rankdir = direction(scene), spine = mainPath(scene);
  const out = [`digraph g { graph [rankdir=${rankdir} compound=true newrank=true bgcolor=transparent`
    + ` fontname=Helvetica fontsize=11 fontcolor=${quote(theme.ink)} nodesep=0.22 ranksep=0.38 pad=0.2${scene.arcs.length > MANY_ARCS ? " " + QUICK : ""}];`,
    `node [fontname=Helvetica fontsize=11 fontcolor=${quote(theme.ink)} color=${quote(theme.border)} margin="0.10,0.05" height=0.3];`,
    `edge [fontname=Helvetica fontsize=9 fontcolor=${quote(theme.muted)} color=${quote(theme.data)} arrowsize=0.6];`];
  const inside = new Map(scene.clusters.map((s) => [s, []]));
  for (const box of scene.boxes.values()) inside.get(box.parent)?.push(box);
  const put = (s, depth) => {
    for (const box of inside.get(s)) {
      let [shape, style, frames] = SHAPES[box.kind] ?? SHAPES.op;
      const parts = fillOf(box);
      let fill = parts[0]?.[0] ?? theme.background;
      if (parts.length > 1 && ["box", "box3d", "tab", "component"].includes(shape)) {
        shape = "box"; style = "striped"; fill = parts.map(([c, f]) => `${c};${f.toFixed(3)}`).join(":");
      }
      out.push(`${box.id} [id=${box.id} label=<${boxLabel(box)}> tooltip=${quote(tooltip(box))} shape=${shape}`
        + ` style=${quote(style)} fillcolor=${quote(fill)} peripheries=${frames}];`);
    }
    for (const k of S.kids[s]) {
      if (!inside.has(k)) continue;
      const plain = ["scope", "section", "series"].includes(text(S.kind[k]));
      out.push(`subgraph cluster_${k} { graph [id=c${k} label=${quote(ellipsize(text(S.label[k]), LABEL + 10))}`
        + ` tooltip=${quote(S.path[k])} style=${quote(plain ? "rounded,filled" : "rounded,filled,bold")}`
        + ` fillcolor=${quote(clusterFill(k, depth))} labeljust=l labelloc=t margin=10`
        + ` color=${quote(plain ? theme.cluster_border : theme.border)}];`);
      if (!inside.get(k).length && !S.kids[k].some((kid) => inside.has(kid))) out.push(`anchor${k} [style=invis shape=point width=0.01];`);
      put(k, depth + 1);
      out.push("}");
    }
  };
  put(0, 0);
  if (D.asideRoot >= 0 && inside.has(D.asideRoot)) {
    out.push(`subgraph cluster_aside { graph [label="moved aside" style="rounded,dashed" labeljust=l margin=10`
      + ` color=${quote(theme.cluster_border)} fontcolor=${quote(theme.muted)}];`);
    put(D.asideRoot, 0);
    const column = inside.get(D.asideRoot);
    if (rankdir === "TB") for (let n = 1; n < column.length; n++) out.push(`${column[n - 1].id} -> ${column[n].id} [style=invis];`);
    out.push("}");
  }
  const firstIn = (s) => inside.get(s).find((b) => true)?.id ?? S.kids[s].filter((k) => inside.has(k)).map(firstIn)[0] ?? "anchor" + s;
  const end = (id, what) => (id[0] !== "c" ? [id, ""] : [firstIn(+id.slice(1)), ` ${what}=cluster_${id.slice(1)}`]);
  const beside = placeSources(scene, out);
  for (const arc of scene.arcs) {
    const [a, tail] = end(arc.src, "ltail"), [b, head] = end(arc.dst, "lhead");
    const sent = isTransfer(arc);
    const style = arc.kind === CONTROL ? ` style=dashed arrowhead=empty color=${quote(theme.control)}`
      : sent ? ` style=bold color=${quote(theme.strong)}` : arc.kind === REFERENCE ? ` arrowhead=diamond color=${quote(theme.reference)}` : "";
    const width = sent ? 1.8 : arc.kind === CONTROL ? 0.9 : 1 + Math.min(2, Math.sqrt(arc.links.length - 1) * 0.4);
    out.push(`${a} -> ${b} [id=${arc.id}${sent ? " class=transfer" : ""} penwidth=${width.toFixed(2)}${style}${tail}${head} tooltip=${quote(arcTip(arc))}`
      + `${arcLabel(arc)}${spine.has(arc) ? " weight=20" : beside.has(arc) ? " weight=0" : ""}];`);
  }
  out.push("}");
  return out.join("\n");
}

const isTransfer = (arc) => text(E.op[L.src[arc.links[0]]]).endsWith("Send") && text(E.op[L.dst[arc.links[0]]]).endsWith("Recv");
function arcLabel(arc) {
  if (arc.kind === CONTROL) return arc.links.length > 1 ? ` label="  ${arc.links.length}× "` : "";
  const box = scene.boxes.get(arc.src);
  if (box && ["variable", "input", "constant"].includes(box.kind) && arc.links.length === 1) return "";
  const tensors = new Map(arc.links.map((k) => [L.src[k] + ":" + L.out[k], text(L.shape[k])]));
  const shapes = new Set(tensors.values());
  const one = shapes.size === 1 && arc.kind === DATA ? [...shapes][0] : "";
  const label = tensors.size === 1 ? one : one ? `${tensors.size}× ${one}` : `${tensors.size} tensors`;
  return label ? ` label=${quote("  " + label + " ")}` : "";
}
function arcTip(arc) {
  const names = [...new Set(arc.links.slice(0, 9).map((k) => (L.kind[k] === CONTROL ? "^" + nameOf(L.src[k]) : nameOf(L.src[k]) + ":" + L.out[k])))];
  return names.slice(0, 8).join("\n") + (arc.links.length > 8 ? `\n… ${arc.links.length} edges in all` : "");
}
function tooltip(box) {
  return box.scope !== undefined ? `${S.path[box.scope]}\n${S.size[box.scope]} nodes` : `${nameOf(box.element)}\n${text(E.op[box.element])}`;
}

// Variables and constants that one box uses stand beside it; those of several stay below what feeds the scope (as in
// dot.py). Returns the arcs from the former.
function placeSources(scene, out) {
  const into = new Map(), users = new Map(), beside = new Set();
  for (const arc of scene.arcs) {
    into.set(arc.dst, [...(into.get(arc.dst) ?? []), arc]);
    users.set(arc.src, (users.get(arc.src) ?? new Set()).add(arc.dst));
  }
  for (const arc of scene.arcs) {
    const source = scene.boxes.get(arc.src), target = scene.boxes.get(arc.dst);
    if (!source || !target || into.has(arc.src) || !["variable", "constant"].includes(source.kind)) continue;
    if (source.parent !== target.parent) continue;
    if (users.get(arc.src).size === 1 && arc.kind !== CONTROL) { out.push(`{rank=same; ${source.id}; ${target.id}}`); beside.add(arc); continue; }
    if (source.parent !== 0) for (const other of into.get(arc.dst)) {
      const feeder = scene.boxes.get(other.src);
      if (feeder && feeder !== source && feeder.parent !== source.parent) out.push(`${feeder.id} -> ${source.id} [style=invis weight=0];`);
    }
  }
  return beside;
}

// The arcs of the longest path of data: drawn straight, it is what the eye follows.
function mainPath(scene) {
  const { rank } = ranks(scene), into = new Map(), chosen = new Set();
  for (const arc of scene.arcs) if (arc.kind === DATA && rank.has(arc.src) && rank.has(arc.dst)) into.set(arc.dst, [...(into.get(arc.dst) ?? []), arc]);
  let here = [...rank].reduce((best, entry) => (best && best[1] >= entry[1] ? best : entry), null)?.[0];
  while (here) {
    const best = (into.get(here) ?? []).filter((a) => rank.get(a.src) < rank.get(here))
      .reduce((b, a) => (b && rank.get(b.src) >= rank.get(a.src) ? b : a), null);
    if (!best) break;
    chosen.add(best); here = best.src;
  }
  return chosen;
}

function ranks(scene) {
  const ids = [...scene.boxes.keys()], rank = new Map(ids.map((id) => [id, 0])), pending = new Map(rank), out = new Map(ids.map((id) => [id, []]));
  for (const a of scene.arcs) if (rank.has(a.src) && rank.has(a.dst)) { out.get(a.src).push(a.dst); pending.set(a.dst, pending.get(a.dst) + 1); }
  const ready = ids.filter((id) => pending.get(id) === 0);
  for (const id of ready) for (const next of out.get(id)) {
    rank.set(next, Math.max(rank.get(next), rank.get(id) + 1));
    pending.set(next, pending.get(next) - 1);
    if (pending.get(next) === 0) ready.push(next);
  }
  return { rank };
}

function direction(scene) {
  const { rank } = ranks(scene), widths = new Map();
  for (const r of rank.values()) widths.set(r, (widths.get(r) ?? 0) + 1);
  const widest = Math.max(1, ...widths.values());
  return widest * 130 > 1400 && widths.size * 180 < widest * 130 ? "LR" : "TB";
}

// -- drawing --------------------------------------------------------------------------------------------

function draw(fitAll, keep) {
  const before = keep && position(keep);
  const begun = performance.now();
  scene = makeScene();
  const svgText = graphviz.layout(toDot(scene), "svg", "dot");
  const laid = performance.now();
  const parsed = new DOMParser().parseFromString(svgText, "image/svg+xml").documentElement;
  const box = parsed.getAttribute("viewBox").split(" ").map(Number);
  size = { w: box[2], h: box[3] };
  const svg = document.createElementNS(SVG, "svg"), stage = document.createElementNS(SVG, "g");
  stage.id = "stage";
  const drawing = document.importNode(parsed.querySelector("g.graph"), true);
  drawing.id = "drawing";
  drawing.querySelector(":scope > title")?.remove();
  stage.append(drawing); svg.append(stage);
  svg.setAttribute("role", "group"); svg.setAttribute("aria-label", `Graph ${D.title}, ${scene.boxes.size} boxes`);
  for (const g of drawing.querySelectorAll("g.node")) dress(g);
  for (const g of drawing.querySelectorAll("g.cluster")) { g.dataset.scope = g.id.slice(1); g.querySelector("title")?.remove(); }
  for (const g of drawing.querySelectorAll("g.edge")) g.querySelector(":scope > title")?.remove();
  liftTitles(drawing);
  $("canvas").replaceChildren(svg);
  if (fitAll) fit();
  else if (before) { const after = position(keep); if (after) { view.x += before.x - after.x; view.y += before.y - after.y; } }
  place(); side(); mark();
  document.body.dataset.layoutMs = String(Math.round(laid - begun));
  document.body.dataset.drawMs = String(Math.round(performance.now() - begun));
  say(`${scene.boxes.size} boxes, ${scene.arcs.length} edges${scene.thinned ? ` (${scene.thinned} weaker ones not drawn)` : ""}`);
}

// Titles of open scopes are drawn last, on a rim of their own: edges that lead in must not cross them out.
function liftTitles(drawing) {
  const last = document.createElementNS(SVG, "g");
  last.setAttribute("class", "titles");
  for (const g of drawing.querySelectorAll("g.cluster")) {
    const fill = g.querySelector("path, polygon")?.getAttribute("fill") ?? "none";
    for (const label of g.querySelectorAll("text")) { label.setAttribute("stroke", fill === "none" ? theme.background : fill); label.dataset.scope = g.dataset.scope; last.append(label); }
  }
  drawing.append(last);
}

// Graphviz places lines by the widths of its own font; anchored at their middle they fit in any.
function centerLabels(g) {
  const xs = [];
  for (const shape of g.querySelectorAll("path, polygon, polyline")) for (const [, x] of (shape.getAttribute("d") ?? shape.getAttribute("points")).matchAll(/(-?[\d.]+),-?[\d.]+/g)) xs.push(+x);
  for (const e of g.querySelectorAll("ellipse")) xs.push(+e.getAttribute("cx"));
  if (!xs.length) return;
  const middle = (Math.min(...xs) + Math.max(...xs)) / 2;
  for (const t of g.querySelectorAll('text[text-anchor="start"]')) { t.setAttribute("text-anchor", "middle"); t.setAttribute("x", middle); }
}

function dress(g) {
  const box = scene.boxes.get(g.id);
  g.querySelector(":scope > title")?.remove();
  centerLabels(g);
  if (!box) { g.setAttribute("aria-hidden", "true"); return; }
  g.setAttribute("tabindex", "0"); g.setAttribute("role", "button");
  g.setAttribute("aria-label", box.scope !== undefined
    ? `${text(S.label[box.scope])}, closed ${box.kind}, ${S.size[box.scope]} nodes` : `${labelOf(box.element)}, ${text(E.op[box.element])}`);
  if (box.scope !== undefined) g.setAttribute("aria-expanded", "false");
}

function position(id) {
  const g = document.getElementById(id), r = g?.getBoundingClientRect();
  return r && { x: r.left + r.width / 2, y: r.top + Math.min(r.height / 2, 20) };
}
function place() {
  $("stage")?.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  minimap();
}
function fit() {
  const r = $("canvas").getBoundingClientRect(), k = Math.min(r.width / size.w, r.height / size.h);
  // Small enough to see all is no use when nothing can be read; then the top, where inputs are, comes first.
  view.k = Math.max(0.55, Math.min(1.5, k * 0.97));
  view.x = (r.width - size.w * view.k) / 2;
  view.y = k < 0.55 ? 8 : (r.height - size.h * view.k) / 2;
}
function zoom(factor, cx, cy) {
  const r = $("canvas").getBoundingClientRect();
  cx ??= r.width / 2; cy ??= r.height / 2;
  const k = Math.max(0.05, Math.min(6, view.k * factor)), f = k / view.k;
  view = { x: cx - (cx - view.x) * f, y: cy - (cy - view.y) * f, k };
  place();
}
function minimap() {
  const holder = $("minimap"), r = $("canvas").getBoundingClientRect();
  holder.innerHTML = `<svg viewBox="0 0 ${size.w} ${size.h}"><use href="#drawing"/><rect class="view" x="${-view.x / view.k}" y="${-view.y / view.k}"
    width="${r.width / view.k}" height="${r.height / view.k}"/></svg>`;
}

// -- scopes ---------------------------------------------------------------------------------------------

function toggle(id) {
  const s = +id.slice(1);
  if (id[0] === "s") {
    opened.add(s);
    // A scope in which there is only one scope shows nothing new; open that too.
    for (let t = s; S.own[t].length === 0 && S.kids[t].length === 1; ) opened.add(t = S.kids[t][0]);
    draw(false, id[0] === "s" ? id : null); select("c" + s);
  } else if (id[0] === "c" && s !== 0) {
    opened.delete(s); draw(false, id); select("s" + s);
  }
}
function reveal(i) {
  const target = E.host[i] >= 0 ? E.host[i] : i;
  let changed = false;
  for (let s = E.scope[target]; s >= 0; s = S.parent[s]) if (!opened.has(s)) { opened.add(s); changed = true; }
  if (changed) draw(false);
  const id = scene.owner(i);
  select(id); center(id);
}
function center(id) {
  const p = position(id);
  if (!p) return;
  const r = $("canvas").getBoundingClientRect();
  view.x += r.left + r.width / 2 - p.x; view.y += r.top + r.height / 2 - p.y;
  place();
  const g = document.getElementById(id);
  if (g?.focus) g.focus({ preventScroll: true });
}

// -- selection, details, paths --------------------------------------------------------------------------

function select(id) {
  selected = id; mark(); details();
  // The address leads back here: pages can be sent round with the node that is meant.
  try { history.replaceState(null, "", id ? "#" + encodeURIComponent(title(id)) : location.pathname); } catch { /* not everywhere allowed */ }
}
function goToAddress() {
  const name = decodeURIComponent(location.hash.slice(1));
  if (!name) return;
  const i = E.name.indexOf(name), s = S.path.indexOf(name + "/");
  if (i >= 0) reveal(i);
  else if (s > 0) {
    for (let t = S.parent[s]; t >= 0; t = S.parent[t]) opened.add(t);
    draw(false);
    const id = scene.boxes.has("s" + s) ? "s" + s : "c" + s;
    select(id); center(id);
  }
}
// The picture as it is, without what the page adds to it.
function save() {
  const copy = document.querySelector("#drawing").cloneNode(true), box = document.createElementNS(SVG, "svg");
  copy.removeAttribute("id");
  for (const label of copy.querySelectorAll("g.titles text")) { label.setAttribute("paint-order", "stroke"); label.setAttribute("stroke-width", "4"); label.setAttribute("stroke-linejoin", "round"); }
  for (const [key, value] of [["xmlns", SVG], ["viewBox", `0 0 ${size.w} ${size.h}`], ["width", size.w], ["height", size.h], ["style", `background:${theme.background}`]]) box.setAttribute(key, value);
  box.append(copy);
  const link = document.createElement("a"), url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(box)], { type: "image/svg+xml" }));
  link.href = url; link.download = D.title.replace(/[^\w.-]+/g, "_") + ".svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
function mark() {
  for (const g of document.querySelectorAll("g.node.selected, g.edge.near")) g.classList.remove("selected", "near");
  if (selected) {
    document.getElementById(selected)?.classList.add("selected");
    for (const arc of scene.arcs) if (arc.src === selected || arc.dst === selected) document.getElementById(arc.id)?.classList.add("near");
  }
  const svg = document.querySelector("#canvas svg");
  svg?.classList.toggle("traced", traced !== null);
  if (!svg || !traced) return;
  const hit = new Set();
  for (const i of traced) hit.add(scene.owner(i));
  for (const g of svg.querySelectorAll("g.node")) g.classList.toggle("hit", hit.has(g.id));
  for (const arc of scene.arcs) {
    const on = arc.links.some((k) => traced.has(L.src[k]) && traced.has(L.dst[k]));
    document.getElementById(arc.id)?.classList.toggle("hit", on);
  }
}
const elementsOf = (id) => (id[0] === "e" ? [+id.slice(1)] : membersOf(+id.slice(1)));

function reach(starts, forward) {
  const seen = new Set(starts), stack = [...seen];
  while (stack.length) for (const k of (forward ? outLinks : inLinks)(stack.pop())) {
    const other = forward ? L.dst[k] : L.src[k];
    if (!seen.has(other)) { seen.add(other); stack.push(other); }
  }
  return seen;
}
function trace(kind) {
  if (!selected) return say("select a box first");
  if (kind === "start") { startOfPath = selected; return say(`paths start at ${title(selected)}; select another box and press t`); }
  if (kind === "to") {
    if (!startOfPath) return say("first say where paths start (s)");
    const a = reach(elementsOf(startOfPath), true), b = reach(elementsOf(selected), false);
    traced = new Set([...a].filter((i) => b.has(i)));
    if (!traced.size) { traced = null; mark(); return say(`there is no path from ${title(startOfPath)} to ${title(selected)}`); }
  } else traced = reach(elementsOf(selected), kind === "down");
  mark(); say(`${traced.size} nodes`);
}
const title = (id) => (id[0] === "e" ? nameOf(+id.slice(1)) : S.path[+id.slice(1)].replace(/\/$/, "") || D.title);

function details() {
  const holder = $("details");
  holder.replaceChildren();
  if (!selected) { holder.innerHTML = '<p class="hint">Nothing is selected.</p>'; return; }
  const add = (tag, content, className) => { const e = document.createElement(tag); if (className) e.className = className; e.append(content); holder.append(e); return e; };
  const isElement = selected[0] === "e", n = +selected.slice(1);
  add("div", title(selected), "name");
  const actions = add("div", "", "actions");
  const act = (label, run) => { const b = document.createElement("button"); b.textContent = label; b.onclick = run; actions.append(b); };
  if (selected[0] === "s") act("Open", () => toggle(selected));
  if (selected[0] === "c") act("Close", () => toggle(selected));
  act("Before", () => trace("up")); act("After", () => trace("down"));
  act("Path from here", () => trace("start")); if (startOfPath) act("Path to here", () => trace("to"));
  if (traced) act("Clear paths", () => { traced = null; mark(); details(); });
  const list = add("dl", "");
  const row = (key, value) => { if (value === "" || value === undefined) return; const t = document.createElement("dt"), d = document.createElement("dd"); t.textContent = key; d.append(value); list.append(t, d); };
  if (isElement) {
    row("op", text(E.op[n])); row("type", text(E.dtype[n])); row("shape", text(E.shape[n])); row("device", text(E.device[n]));
    for (const line of text(E.lines[n]).split("\n").slice(1)) row("", line);
    if (D.attrs) for (const [key, value] of D.attrs[n]) row(key, value);
    for (const m of Object.values(D.modes)) if (m.amount && m.amount[n]) row(m.unit === "B" ? "memory" : "cost", amount(m.amount[n], m.unit));
    if (D.modes.diff) { row("diff", D.modes.diff.keys[D.modes.diff.of[n]]); for (const note of D.modes.diff.notes[n] ?? []) row("", note); }
    statistics(n, add);
    ends("Inputs", [...inLinks(n)].map((k) => [L.src[k], L.kind[k] === CONTROL ? "^" : "", L.kind[k] === CONTROL ? "" : ":" + L.out[k], text(L.shape[k])]), add);
    ends("Outputs", [...outLinks(n)].map((k) => [L.dst[k], L.kind[k] === CONTROL ? "^" : "", "", text(L.shape[k])]), add);
  } else {
    row("kind", text(S.kind[n])); row("nodes", String(S.size[n]));
    if (text(S.detail[n])) row("detail", text(S.detail[n]));
    const ops = new Map(), devices = new Set();
    for (const i of membersOf(n)) { ops.set(text(E.op[i]), (ops.get(text(E.op[i])) ?? 0) + 1); if (text(E.device[i])) devices.add(text(E.device[i])); }
    for (const m of Object.values(D.modes)) if (m.amount) row(m.unit === "B" ? "memory" : "cost", amount(membersOf(n).reduce((t, i) => t + m.amount[i], 0), m.unit));
    row("devices", [...devices].join(", "));
    if (D.modes.structure.scopeOf[n] >= 0) row("structure", "like " + D.modes.structure.keys[D.modes.structure.scopeOf[n]].replace(/^(\d+) ×.*/, (_, c) => c - 1 + " others"));
    if (S.lead[n] >= 0) statistics(S.lead[n], add);
    add("h2", "Ops");
    const ul = add("ul", "");
    for (const [op, count] of [...ops].sort((a, b) => b[1] - a[1]).slice(0, 30)) { const li = document.createElement("li"); li.textContent = `${count} ${op}`; ul.append(li); }
  }
}
// What a constant or variable holds; of a node that absorbed some, theirs too.
function statistics(n, add) {
  const mine = Object.keys(D.tensors).map(Number).filter((i) => i === n || E.host[i] === n);
  for (const i of mine.slice(0, 12)) {
    add("h2", i === n ? "Values" : `Values of ${nameOf(i)}`);
    const list = add("dl", "");
    for (const [key, value] of D.tensors[i]) { const t = document.createElement("dt"), d = document.createElement("dd"); t.textContent = key; d.textContent = value; list.append(t, d); }
  }
}
function ends(heading, rows, add) {
  if (!rows.length) return;
  add("h2", `${heading} (${rows.length})`);
  const ul = add("ul", "");
  for (const [i, before, after, shape] of rows.slice(0, 40)) {
    const li = document.createElement("li"), b = document.createElement("button");
    b.className = "link"; b.textContent = before + nameOf(i) + after; b.onclick = () => reveal(i);
    li.append(b, shape ? ` ${shape}` : ""); ul.append(li);
  }
  if (rows.length > 40) { const li = document.createElement("li"); li.textContent = `… ${rows.length - 40} more`; ul.append(li); }
}
function amount(v, unit) {
  if (unit === "µs" && v >= 1e3) { [v, unit] = v >= 1e6 ? [v / 1e6, "s"] : [v / 1e3, "ms"]; }
  const gap = unit.length === 1 ? "" : " ";
  for (const [limit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= limit) return +(v / limit).toPrecision(3) + " " + letter + gap + unit;
  return +v.toPrecision(3) + " " + unit;
}

function side() {
  const legend = $("legend").querySelector("ul");
  legend.replaceChildren();
  const row = (style, className, label) => { const li = document.createElement("li"); const sw = document.createElement("span"); sw.className = "swatch " + className; sw.style.cssText = style; li.append(sw, label); legend.append(li); };
  const m = D.modes[mode], palette = m.fills[$("theme").value];
  if (m.amount) palette.forEach((c, n) => row(`background:${c}`, "", `about ${amount(m.top * (n / (palette.length - 1)) ** 2, m.unit)}`));
  else m.keys.forEach((key, n) => m.used[n] && row(`background:${palette[n]}`, "", key));
  row(`border-bottom:2px solid ${theme.data}`, "dash", "data");
  row(`border-bottom:2px dashed ${theme.control}`, "dash", "control");
  row(`border-bottom:2px solid ${theme.reference}`, "dash", "reference or resource");
  if (scene.arcs.some(isTransfer)) row(`border-bottom:3px solid ${theme.strong}`, "dash", "sent to another part");
  const list = $("aside-list"), ul = list.querySelector("ul");
  ul.replaceChildren();
  const entry = (label, run) => { const li = document.createElement("li"), b = document.createElement("button"); b.className = "link"; b.textContent = label; b.onclick = run; li.append(b); ul.append(li); };
  for (const [id, label] of scene.hubs) entry(`${label} (joined to many)`, () => { selected = id; details(); });
  for (const box of scene.unconnected) entry(`${box.scope !== undefined ? text(S.label[box.scope]) : labelOf(box.element)} (not connected)`, () => { selected = box.id; details(); });
  list.hidden = !ul.children.length;
}

// -- search ---------------------------------------------------------------------------------------------

let matches = [], current = 0;
function search() {
  const query = $("search").value.trim().toLowerCase();
  matches = [];
  let pattern = null;
  if (/[\\^$*+?()[\]{}|]/.test(query)) try { pattern = new RegExp($("search").value.trim(), "i"); } catch { /* half typed: text for now */ }
  if (query) {
    const ranked = [[], [], []];
    for (let i = 0; i < E.name.length && ranked[0].length < MOST_RESULTS; i++) {
      const name = nameOf(i).toLowerCase(), at = pattern ? nameOf(i).search(pattern) : name.indexOf(query);
      if (at >= 0) { const r = name === query ? 0 : name.endsWith(query) || at === 0 ? 1 : 2; if (ranked[r].length < MOST_RESULTS) ranked[r].push(i); }
      else if ((pattern ? pattern.test(text(E.op[i])) : text(E.op[i]).toLowerCase() === query) && ranked[2].length < MOST_RESULTS) ranked[2].push(i);
    }
    matches = ranked.flat().slice(0, MOST_RESULTS);
  }
  current = 0; results();
  say(query ? `${matches.length}${matches.length === MOST_RESULTS ? " or more" : ""} found` : "");
}
function results() {
  const ul = $("results");
  ul.replaceChildren();
  matches.forEach((i, n) => {
    const li = document.createElement("li"), small = document.createElement("small");
    li.setAttribute("role", "option"); li.setAttribute("aria-selected", String(n === current)); li.id = "result-" + n;
    small.textContent = " " + text(E.op[i]); li.append(nameOf(i), small); li.onmousedown = (e) => { e.preventDefault(); go(n); };
    ul.append(li);
  });
  ul.hidden = !matches.length;
  $("search").setAttribute("aria-expanded", String(!!matches.length));
  if (matches.length) $("search").setAttribute("aria-activedescendant", "result-" + current); else $("search").removeAttribute("aria-activedescendant");
  ul.children[current]?.scrollIntoView({ block: "nearest" });
}
function go(n) { const i = matches[n]; matches = []; results(); if (i !== undefined) reveal(i); }

// -- events ---------------------------------------------------------------------------------------------

function under(event) {
  const title = event.target.closest?.("g.titles text");
  if (title) return title.dataset.scope ? "c" + title.dataset.scope : null;
  const g = event.target.closest?.("g.node, g.cluster");
  return g && (g.classList.contains("cluster") ? "c" + g.dataset.scope : g.id);
}
function listen() {
  const canvas = $("canvas");
  let drag = null;
  canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, vx: view.x, vy: view.y, moved: false }; });
  window.addEventListener("pointermove", (e) => {
    if (!drag) return;
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
    if (drag.moved) { view.x = drag.vx + dx; view.y = drag.vy + dy; place(); }
  });
  window.addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); });
  canvas.addEventListener("click", (e) => { if (!drag?.moved) { const id = under(e); if (id) select(id); } });
  canvas.addEventListener("dblclick", (e) => { const id = under(e); if (id && id[0] !== "e") toggle(id); });
  canvas.addEventListener("focusin", (e) => { const g = e.target.closest("g.node"); if (g && g.id !== selected) select(g.id); });
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const r = canvas.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
  }, { passive: false });
  $("minimap").addEventListener("pointerdown", (e) => {
    const svg = $("minimap").querySelector("svg"), m = svg.getScreenCTM().inverse(), p = new DOMPoint(e.clientX, e.clientY).matrixTransform(m);
    const r = canvas.getBoundingClientRect();
    view.x = r.width / 2 - p.x * view.k; view.y = r.height / 2 - p.y * view.k; place();
  });
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { current = (current + (e.key === "ArrowDown" ? 1 : matches.length - 1)) % Math.max(1, matches.length); results(); e.preventDefault(); }
    else if (e.key === "Enter") go(current);
    else if (e.key === "Escape") { $("search").value = ""; search(); canvas.focus(); }
    e.stopPropagation();
  });
  $("search").addEventListener("blur", () => { matches = []; results(); });
  $("color").onchange = () => { mode = $("color").value; draw(false); };
  $("theme").onchange = () => { theme = D.themes[$("theme").value]; dye(); draw(false); };
  $("fit").onclick = () => { fit(); place(); };
  $("zoom-in").onclick = () => zoom(1.25); $("zoom-out").onclick = () => zoom(0.8);
  $("reset").onclick = () => { opened = new Set(first); selected = traced = startOfPath = null; draw(true); details(); };
  $("help-button").onclick = help; $("save").onclick = save;
  window.addEventListener("resize", place); window.addEventListener("hashchange", goToAddress);
  document.addEventListener("keydown", keys);
  dye();
}
function help() { $("help").hidden = !$("help").hidden; $("help-button").setAttribute("aria-expanded", String(!$("help").hidden)); }
function dye() {
  const style = document.documentElement.style;
  style.setProperty("--back", theme.background); style.setProperty("--ink", theme.ink); style.setProperty("--muted", theme.muted);
  style.setProperty("--line", theme.cluster_border); style.setProperty("--panel", theme.clusters[0]); style.setProperty("--strong", theme.strong);
}
function keys(e) {
  if (e.target.matches("input, select") || e.ctrlKey || e.metaKey || e.altKey) return;
  const handlers = {
    "/": () => $("search").focus(), "?": help, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": () => { fit(); place(); },
    s: () => { trace("start"); details(); }, t: () => trace("to"), u: () => trace("up"), d: () => trace("down"),
    o: () => selected?.[0] === "s" && toggle(selected), c: () => closeAround(),
    Escape: () => { traced = startOfPath = null; $("help").hidden = true; select(null); },
    ArrowDown: () => along(1), ArrowUp: () => along(-1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
  };
  if (e.key === "Enter" || e.key === " ") { if (e.target.matches("button")) return; handlers[e.key] = () => selected && selected[0] !== "e" && toggle(selected); }
  const run = handlers[e.key];
  if (run) { run(); e.preventDefault(); }
}
function closeAround() {
  if (!selected) return;
  if (selected[0] === "c") return toggle(selected);
  const s = scene.boxes.get(selected)?.parent;
  if (s > 0 && s !== D.asideRoot) toggle("c" + s);
}
function along(step) {
  if (!selected) return firstBox();
  const arcs = scene.arcs.filter((a) => (step > 0 ? a.src : a.dst) === selected).sort((a, b) => a.kind - b.kind);
  const next = arcs.map((a) => (step > 0 ? a.dst : a.src)).find((id) => scene.boxes.has(id));
  if (next) { select(next); center(next); } else say(step > 0 ? "nothing comes after" : "nothing comes before");
}
function beside(step) {
  if (!selected) return firstBox();
  const here = position(selected);
  let best = null, distance = Infinity;
  for (const id of scene.boxes.keys()) {
    const p = id !== selected && position(id);
    if (!p || (p.x - here.x) * step <= 1) continue;
    const d = Math.abs(p.x - here.x) + 3 * Math.abs(p.y - here.y);
    if (d < distance) { distance = d; best = id; }
  }
  if (best) { select(best); center(best); }
}
function firstBox() { const id = scene.boxes.keys().next().value; if (id) { select(id); center(id); } }
function say(message) { $("status").textContent = message; }

start().catch((error) => { $("status").textContent = `This page cannot be shown: ${error.message}`; console.error(error); });
})();
