// Colours and texts of boxes, scopes and arcs.

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

const LABEL = 30, LINE = 34, MOST_LINES = 4;

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

const title = (id) => (id[0] === "e" ? nameOf(+id.slice(1)) : S.path[+id.slice(1)].replace(/\/$/, "") || D.title);
function amount(v, unit) {
  if (unit === "µs" && v >= 1e3) { [v, unit] = v >= 1e6 ? [v / 1e6, "s"] : [v / 1e3, "ms"]; }
  const gap = unit.length === 1 ? "" : " ";
  for (const [limit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= limit) return +(v / limit).toPrecision(3) + " " + letter + gap + unit;
  return +v.toPrecision(3) + " " + unit;
}
