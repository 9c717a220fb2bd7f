// What the page says beside the picture: the selected box, the legend, what is not drawn.

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
