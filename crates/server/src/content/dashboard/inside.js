
// The view Cache: searches, one stored response, and its purge.

const FOUND_AT_ONCE = 100;
let query = null;      // What was searched for last.
let found = [];        // What of it has come so far.
let after = null;      // Where the search goes on.
let order = { column: 5, up: false };
let opened = null;     // The stored response that is shown.

const left = (entry) => entry.is_purged ? "purged" : entry.fresh_milliseconds > 0 ? milliseconds(entry.fresh_milliseconds) + " left" : "stale";

// Title, what a row shows, and by what it is sorted.
const COLUMNS = [
  ["address", (entry) => button(entry.address, () => open(entry.id), { class: "link", "aria-haspopup": "dialog" }), (entry) => entry.address],
  ["zone", (entry) => entry.zone, (entry) => entry.zone],
  ["age", (entry) => milliseconds(entry.age_milliseconds), (entry) => entry.age_milliseconds],
  ["freshness", left, (entry) => entry.fresh_milliseconds],
  ["memory", (entry) => bytes(entry.memory_bytes), (entry) => entry.memory_bytes],
  ["asked for in", (entry) => entry.seconds_used + " s", (entry) => entry.seconds_used],
];
const results = grid("Stored responses", COLUMNS.map(([name], column) => button(name, () => sortBy(column))));

function sortBy(column) {
  order = { column, up: order.column === column ? !order.up : column === 0 };
  showFound();
}

function showFound() {
  const by = COLUMNS[order.column][2], sign = order.up ? 1 : -1;
  const compare = (one, other) => by(one) < by(other) ? -sign : by(one) > by(other) ? sign : 0;
  results.cells.forEach((cell, column) => {
    if (column === order.column) cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
  });
  results.fill([...found].sort(compare).map((entry) => COLUMNS.map(([, shown]) => shown(entry))));
  results.made.hidden = !found.length;
}

// Searches for what was typed, or goes on after what was found.
async function search(next) {
  const asked = query;
  byId("more").disabled = true;
  try {
    const answer = await ask(`search=${asked}&limit=${FOUND_AT_ONCE}` + (next ? "&after=" + encodeURIComponent(next) : ""));
    if (asked !== query) return;
    found = next ? found.concat(answer.entries) : answer.entries;
    const more = answer.next ? "; there may be more" : "";
    byId("found").className = "";
    byId("found").textContent = found.length ? counted(found.length, "stored response", "stored responses") + more : "Nothing is stored that fits" + more + ".";
    byId("more").hidden = !answer.next;
    after = answer.next;
  } catch (error) {
    byId("more").hidden = true;
    await failed(error);
  }
  byId("more").disabled = false;
  showFound();
}

async function failed(error) {
  byId("found").className = "bad";
  byId("found").textContent = error.message;
  if (error.status === 401) await lost(error.message);
}

function searchFor(text, tag, zone) {
  byId("search_text").value = text;
  byId("search_tag").value = tag;
  byId("search_zone").value = zone;
  query = `${encodeURIComponent(text)}&tag=${encodeURIComponent(tag)}&zone=${encodeURIComponent(zone)}`;
  return search(null);
}

function fillZones() {
  const zones = named(N.zone_used_bytes, "zone"), choice = byId("search_zone");
  if (zones.length + 1 === choice.options.length) return;
  const chosen = choice.value;
  choice.replaceChildren(element("option", { value: "" }, "all"), ...zones.map((zone) => element("option", { value: zone }, zone)));
  choice.value = zones.includes(chosen) ? chosen : "";
}

// ---- one stored response ----

async function open(id) {
  try {
    opened = await ask("entry=" + encodeURIComponent(id));
  } catch (error) {
    return failed(error);
  }
  byId("entry_title").textContent = opened.address;
  byId("entry_body").replaceChildren(...facts(opened));
  byId("entry_said").textContent = "";
  showPurge();
  byId("entry").showModal();
  byId("entry").scrollTop = 0;
  byId("entry_title").focus();
}

function facts(entry) {
  const list = element("dl", {});
  const fact = (name, ...what) => list.append(element("dt", {}, name), element("dd", {}, ...what));
  fact("Cache key", entry.key ?? "not shown: something that visitors send may be in it");
  fact("Zone", entry.zone);
  fact("Status", String(entry.status));
  fact("Age", milliseconds(entry.age_milliseconds));
  fact("Lifetime", milliseconds(entry.lifetime_milliseconds));
  fact("Given by", entry.lifetime_by || entry.lifetime_source);
  fact("Freshness", left(entry));
  fact("Size", `${bytes(entry.body_bytes)} of body, ${bytes(entry.memory_bytes)} of memory with all forms`);
  for (const form of entry.forms ?? []) fact("as " + form.name, form.bytes === undefined || form.bytes === null ? "saves nothing, not kept" : bytes(form.bytes));
  fact("Asked for", `${milliseconds(entry.used_milliseconds_ago)} ago, in about ${entry.seconds_used} of the last seconds`);
  if (entry.is_private) fact("For", "one session alone");
  if (entry.is_purged) fact("Purged", "nobody is shown it");
  const made = [list];
  const part = (title, ...what) => made.push(element("h3", {}, title), ...what);
  if (entry.tags?.length) {
    const tag = (text) => element("li", {}, button(text, () => { byId("entry").close(); searchFor("", text, ""); }));
    part("Tags", element("ul", { class: "tags" }, ...entry.tags.map(tag)));
  }
  if (entry.vary?.length) part("Varies on", pairs("What it varies on", ["field of requests", "made for"], entry.vary));
  if (entry.fields?.length) part("Fields", pairs("Stored fields", ["field", "value"], entry.fields));
  return made;
}

function pairs(title, heads, rows) {
  const row = (cells, name) => element("tr", {}, ...cells.map((cell) => element(name, name === "th" ? { scope: "col" } : {}, cell)));
  return element("table", { "aria-label": title }, element("thead", {}, row(heads, "th")), element("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}

function showPurge() {
  const may = Boolean(about?.holder);
  byId("purge").disabled = !may;
  byId("purge_help").textContent = may ? "All that is stored for it goes: each variant, scheme and method." : about?.tokens ? "Sign in to purge." : "This dashboard is read-only.";
}

async function purge() {
  const said = byId("entry_said");
  byId("purge").disabled = true;
  try {
    const report = await ask("purge=" + encodeURIComponent(opened.id), "POST");
    const count = sum(report.targets.map((target) => target.responses));
    said.className = "";
    said.textContent = `Purged ${counted(count, "stored response", "stored responses")} in ${milliseconds(report.milliseconds)}. Whoever asks next gets a new one.`;
    byId("purge_help").textContent = "";
  } catch (error) {
    said.className = "bad";
    said.textContent = error.message;
    if (error.status === 401) await lost(error.message);
    showPurge();
  }
  byId("entry_close").focus();
  if (query !== null) await search(null);
}

function prepareCache() {
  byId("results").append(results.made);
  results.made.hidden = true;
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    searchFor(byId("search_text").value.trim(), byId("search_tag").value.trim(), byId("search_zone").value);
  });
  byId("more").addEventListener("click", () => search(after));
  byId("entry_close").addEventListener("click", () => byId("entry").close());
  byId("purge").addEventListener("click", purge);
}
