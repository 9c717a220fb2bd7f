// Pointer, keys and buttons.

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
  $("theme").onchange = () => { theme = D.themes[$("theme").value]; dye(theme); draw(false); };
  $("fit").onclick = () => { fit(); place(); };
  $("zoom-in").onclick = () => zoom(1.25); $("zoom-out").onclick = () => zoom(0.8);
  $("reset").onclick = () => { opened = new Set(first); selected = traced = startOfPath = null; draw(true); details(); };
  $("help-button").onclick = help; $("save").onclick = save;
  window.addEventListener("resize", place); window.addEventListener("hashchange", goToAddress);
  document.addEventListener("keydown", keys);
  dye(theme);
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
