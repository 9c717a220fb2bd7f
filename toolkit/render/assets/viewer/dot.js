// A scene as a program in DOT: boxes and arcs, and how they are ranked.

// With more arcs than this, routing curves takes seconds; straight lines and fewer rounds of placing take 0.1 s.
const MANY_ARCS = 130, QUICK = "splines=line nslimit=1 nslimit1=1 mclimit=0.3";
const SHAPES = {
  op: ["box", "rounded,filled", 1], input: ["ellipse", "filled", 1], output: ["ellipse", "filled", 1],
  variable: ["cylinder", "filled", 1], constant: ["note", "filled", 1], scope: ["box", "rounded,filled,bold", 1],
  section: ["tab", "filled", 1], series: ["box", "filled", 3], function: ["component", "filled", 1],
  loop: ["box", "rounded,filled,bold", 2], partition: ["box3d", "filled", 1], aside: ["box", "rounded,filled,dashed", 1],
};

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
