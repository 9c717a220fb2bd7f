// Opening and closing scopes, what is selected, paths.

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
