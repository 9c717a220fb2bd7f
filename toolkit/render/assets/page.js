// What every page of ours starts with: elements by name, data out of the page, messages to the reader.

const $ = (id) => document.getElementById(id);

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function say(message) { $("status").textContent = message; }
function help() { $("help").hidden = !$("help").hidden; $("help-button").setAttribute("aria-expanded", String(!$("help").hidden)); }
function cannotBeShown(error) { say(`This page cannot be shown: ${error.message}`); console.error(error); }
function dye(theme) {
  const style = document.documentElement.style;
  for (const [name, value] of [["back", theme.background], ["ink", theme.ink], ["muted", theme.muted], ["line", theme.cluster_border],
    ["panel", theme.clusters[0]], ["strong", theme.strong]]) style.setProperty("--" + name, value);
}
