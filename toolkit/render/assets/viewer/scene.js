// What is visible: boxes, open scopes and arcs.

const HUB = 12, NOOP_HUB = 3, LEAST_ARCS = 120, ARCS_PER_BOX = 2;

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
