// The HTML view of a graph starts. Data comes from toolkit/render/html.py (see there). Opening and closing a scope
// makes a new scene (what is visible) and lays it out with Graphviz, as the still pictures are.

let graphviz;                  // the layout engine
let opened, first, scene, selected = null, startOfPath = null, traced = null, mode, theme;

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

start().catch(cannotBeShown);
