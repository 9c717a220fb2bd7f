// Search by name or op.

const MOST_RESULTS = 60;

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
