// The graph as columns, and what follows from them: names, links, the elements of a scope.

const DATA = 0, CONTROL = 1, REFERENCE = 2;  // kinds of links
let D, E, S, L;                // data, its elements, scopes and links
let members = null;            // per scope: its elements, absorbed ones too

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

function membersOf(s) {
  if (!members) {
    members = S.parent.map(() => null);
    const add = (i, s0) => { for (let s1 = s0; s1 >= 0; s1 = S.parent[s1]) (members[s1] ??= []).push(i); };
    for (let i = 0; i < E.name.length; i++) add(i, E.scope[E.host[i] >= 0 ? E.host[i] : i]);
  }
  return members[s] ?? [];
}
