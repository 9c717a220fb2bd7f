// The picture that Graphviz makes of a scene, dressed for the page, and which part of it is seen.

const SVG = "http://www.w3.org/2000/svg";

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

let view = { x: 0, y: 0, k: 1 }, size = { w: 1, h: 1 };

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

function center(id) {
  const p = position(id);
  if (!p) return;
  const r = $("canvas").getBoundingClientRect();
  view.x += r.left + r.width / 2 - p.x; view.y += r.top + r.height / 2 - p.y;
  place();
  const g = document.getElementById(id);
  if (g?.focus) g.focus({ preventScroll: true });
}
