
// The views Now and Pages: numbers as tiles, plots and tables.

const HOUR = 3600000, SHORT = 300000;
const MEMORY = ["HIT", "STALE", "UPDATING"];
const STATUSES = ["HIT", "STALE", "UPDATING", "REVALIDATED", "EXPIRED", "MISS", "BYPASS", "none"];
const N = {};          // What the table of numbers says, by name.
let columns = [];      // Names of what a point has.
let points = [];       // {at, of: {column: value}}, the oldest first.
let latest = null;     // The last snapshot.
let span = SHORT;

// ---- numbers ----

function point(at, values) {
  const of = {};
  columns.forEach((column, place) => { of[column] = values[place] ?? 0; });
  return { at, of };
}

// A snapshot as a point: summed up as the history is.
function flattened(snapshot) {
  const known = new Set(columns), of = {};
  for (const column of columns) of[column] = 0;
  for (const [name, all] of Object.entries(snapshot.numbers)) {
    for (const series of all) {
      if (series.buckets) {
        const bounds = [...(N[name]?.bounds ?? []), "+Inf"];
        series.buckets.forEach((count, at) => { of[`${name}{${bounds[at]}}`] += count; });
        continue;
      }
      const labelled = Object.values(series.labels ?? {}).map((value) => `${name}{${value}}`);
      const column = labelled.find((column) => known.has(column)) ?? name;
      if (known.has(column)) of[column] += series.value;
    }
  }
  return { at: snapshot.at, of };
}

// By how much a column has grown per second; a server that began anew has grown by nothing.
function rate(from, to, column) {
  const seconds = (to.at - from.at) / 1000;
  return seconds > 0 ? Math.max(0, to.of[column] - from.of[column]) / seconds : 0;
}

const rates = (number, values) => (from, to) => sum(values.map((value) => rate(from, to, `${number.name}{${value}}`)));
const perSecond = (number) => (from, to) => rate(from, to, number.name);
const now = (number) => (from, to) => to.of[number.name];

// The value below which this share lies of what came between two points.
function quantile(number, share) {
  const names = [...number.bounds, "+Inf"].map((bound) => `${number.name}{${bound}}`);
  return (from, to) => {
    const counts = names.map((name) => Math.max(0, to.of[name] - from.of[name]));
    const wanted = sum(counts) * share;
    if (!wanted) return null;
    let below = 0;
    for (let at = 0; at < counts.length; at++) {
      if (counts[at] && below + counts[at] >= wanted) {
        const low = at ? number.bounds[at - 1] : 0, high = number.bounds[at] ?? low;
        return low + (high - low) * (wanted - below) / counts[at];
      }
      below += counts[at];
    }
    return null;
  };
}

function hitRatio(from, to) {
  const hits = rates(N.requests, MEMORY)(from, to);
  const all = rates(N.requests, STATUSES.filter((status) => status !== "none"))(from, to);
  return all ? hits / all : null;
}

// ---- plots ----

const LEFT = 60, BELOW = 18;
// What a scale reaches at least: nothing at all is no hill.
const LEAST = new Map([[percent, 1], [persec, 1], [short, 1], [seconds, 0.001], [bytes, 1024]]);

// Series are [name, function of two points]; of some only the second is looked at.
function plot(id, title, help, series, unit, stacked = false) {
  const least = LEAST.get(unit);
  const place = card(id, title, help, "plots");
  const picture = drawn("svg", { class: "plot", role: "img", "aria-label": title });
  const legend = element("ul", { class: "legend" });
  place.append(picture, legend);
  return () => {
    const WIDTH = picture.clientWidth || 600, HEIGHT = picture.clientHeight || 150;
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    const end = points.length ? points[points.length - 1].at : 0, begin = end - span;
    const shown = points.filter((one) => one.at >= begin);
    const values = series.map(([, of]) => shown.slice(1).map((to, at) => of(shown[at], to)));
    const tops = values.map((row) => row.slice());
    if (stacked) {
      for (let row = 1; row < tops.length; row++) tops[row] = tops[row].map((value, at) => value + tops[row - 1][at]);
    }
    const most = Math.max(least, ...tops.flat().filter((value) => value !== null));
    const x = (at) => LEFT + (WIDTH - LEFT - 4) * (at - begin) / span;
    const y = (value) => (HEIGHT - BELOW) - (HEIGHT - BELOW - 12) * value / most;
    picture.replaceChildren();
    for (const share of [0, 0.5, 1]) {
      const height = y(most * share);
      picture.append(drawn("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: height, y2: height }));
      picture.append(label(LEFT - 4, height + 4, unit(most * share), "end"));
    }
    picture.append(label(LEFT, HEIGHT - 4, span === HOUR ? "1 hour ago" : "5 minutes ago"), label(WIDTH, HEIGHT - 4, "now", "end"));
    for (let row = series.length - 1; row >= 0; row--) {
      for (const run of runs(tops[row])) {
        const path = run.map(([at, value]) => `${x(shown[at + 1].at).toFixed(1)},${y(value).toFixed(1)}`).join(" L");
        if (stacked) {
          const first = x(shown[run[0][0] + 1].at), last = x(shown[run[run.length - 1][0] + 1].at);
          picture.append(drawn("path", { class: `area s${row}`, d: `M${first},${y(0)} L${path} L${last},${y(0)} Z` }));
        } else {
          picture.append(drawn("path", { class: `line s${row}`, d: "M" + path }));
        }
      }
    }
    const said = series.map(([name], row) => `${name} ${unit(values[row][values[row].length - 1] ?? null)}`);
    picture.setAttribute("aria-label", `${title}: ${said.join(", ")}`);
    legend.replaceChildren(...said.map((text, row) => {
      const mark = drawn("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
      mark.append(drawn("rect", { class: `mark s${row}`, width: 10, height: 10, rx: 2 }));
      return element("li", {}, mark, text);
    }));
  };
}

// Stretches without gaps, as [index, value].
function runs(values) {
  const all = [];
  let run = [];
  values.forEach((value, at) => {
    if (value !== null) run.push([at, value]);
    else if (run.length) { all.push(run); run = []; }
  });
  if (run.length) all.push(run);
  return all;
}

// ---- tiles and tables ----

// A figure, and what belongs to it in small.
function tile(id, title, help, text) {
  const value = element("b", { id }, "–"), more = element("small", { id: id + "_more" });
  byId("tiles").append(element("div", { title: help ?? "" }, element("span", {}, title), value, more));
  return (from, to, hour) => { [value.textContent, more.textContent] = text(from, to, hour); };
}

function table(id, title, help, heads, rows, nothing = "Nothing yet.") {
  const place = card(id, title, help, "tables");
  const { made, fill } = grid(title, heads);
  const empty = element("p", { class: "empty" }, nothing);
  place.append(made, empty);
  return () => {
    const filled = rows();
    fill(filled);
    made.hidden = !filled.length;
    empty.hidden = filled.length > 0;
  };
}

const all = (number) => latest?.numbers[number.name] ?? [];
const of = (number, wanted) => sum(all(number).filter((series) => Object.entries(wanted).every(([name, value]) => series.labels?.[name] === value)).map((series) => series.value ?? series.count));
const named = (number, name) => [...new Set(all(number).map((series) => series.labels[name]))];

let pages = { costly: [], wanted: [], not_stored: [], clients: [], uses: [] };

function build() {
  const since = (number, from, to) => Math.max(0, to.of[number.name] - from.of[number.name]);
  const timed = (number) => (from, to, hour) => [seconds(quantile(number, 0.5)(hour, to)), `p99 ${seconds(quantile(number, 0.99)(hour, to))}`];
  const lines = (from, to) => sum(["emerg", "alert", "crit", "error"].map((level) => Math.max(0, to.of[`${N.log_lines.name}{${level}}`] - from.of[`${N.log_lines.name}{${level}}`])));
  const tiles = [
    tile("rate", N.requests.title, N.requests.help, (from, to) => [short(rates(N.requests, STATUSES)(from, to)), "per second"]),
    tile("ratio", "Hit ratio", "Answers from memory among requests that a cache had a part in.", (from, to, hour) =>
      [percent(hitRatio(from, to)), `last hour ${percent(hitRatio(hour, to))}`]),
    tile("hit_time", N.hit_duration_seconds.title, N.hit_duration_seconds.help, timed(N.hit_duration_seconds)),
    tile("miss_time", N.miss_duration_seconds.title, N.miss_duration_seconds.help, timed(N.miss_duration_seconds)),
    tile("php", "PHP busy", N.upstream_busy.help, (from, to) =>
      [short(to.of[N.upstream_busy.name]), `${short(to.of[N.upstream_idle.name])} idle, ${short(to.of[N.upstream_queued.name])} in line`]),
    tile("spared", N.spared_seconds.title, N.spared_seconds.help, (from, to, hour) => [seconds(since(N.spared_seconds, hour, to)), "last hour"]),
    tile("memory", N.zone_used_bytes.title, N.zone_used_bytes.help, (from, to) => [bytes(to.of[N.zone_used_bytes.name]), `of ${bytes(to.of[N.zone_budget_bytes.name])}`]),
    tile("errors", "Errors", N.log_lines.help, (from, to, hour) => [short(lines(hour, to)), "lines, last hour"]),
  ];
  const quantiles = (number) => [["p50", quantile(number, 0.5)], ["p90", quantile(number, 0.9)], ["p99", quantile(number, 0.99)]];
  const plots = [
    plot("requests", N.requests.title + " per second", N.requests.help, STATUSES.map((status) => [status, rates(N.requests, [status])]), persec, true),
    plot("hit_ratio", "Hit ratio", "", [["hits", hitRatio]], percent),
    plot("hits", N.hit_duration_seconds.title, N.hit_duration_seconds.help, quantiles(N.hit_duration_seconds), seconds),
    plot("misses", N.miss_duration_seconds.title, N.miss_duration_seconds.help, quantiles(N.miss_duration_seconds), seconds),
    plot("workers", "PHP and upstreams", "", [["busy", now(N.upstream_busy)], ["idle", now(N.upstream_idle)], ["in line", now(N.upstream_queued)]], short),
    plot("queue", N.upstream_queue_duration_seconds.title, N.upstream_queue_duration_seconds.help, quantiles(N.upstream_queue_duration_seconds), seconds),
    plot("stored", "Evictions, purges, refreshes", "", [["stored", perSecond(N.zone_stores)], ["evicted", perSecond(N.zone_evictions)], ["purged", perSecond(N.zone_purged_responses)], ["refreshed", perSecond(N.zone_refreshes)], ["collapsed", perSecond(N.zone_collapsed_requests)]], persec),
    plot("used", N.zone_used_bytes.title, N.zone_used_bytes.help, [["used", now(N.zone_used_bytes)], ["budget", now(N.zone_budget_bytes)]], bytes),
    plot("faults", "Errors", "", [["5xx", rates(N.responses, ["5xx"])], ["upstream failures", rates(N.upstream_requests, ["failure"])], ["refused by limits", rates(N.refused_requests, ["limit_req", "limit_conn"])], ["error log", rates(N.log_lines, ["emerg", "alert", "crit", "error"])]], persec),
  ];
  const onDisk = (zone) => !named(N.zone_disk_serving, "zone").includes(zone) ? "-" : of(N.zone_disk_serving, { zone }) ? short(of(N.zone_disk_responses, { zone })) : "off";
  const single = (number) => short(of(number, {}));
  const lease = () => (of(N.nodes_lease_held, {}) ? "held" : "none") + (of(N.nodes_connected, {}) ? "" : ", no connection");
  const tables = [
    table("costly", "Pages that cost PHP most", "Of the last half hour to hour. What arguments say is not shown.", ["page", "waited", "requests"],
      () => pages.costly.map((page) => [page.name, seconds(page.weight / 1000), short(page.count)])),
    table("wanted", "Most wanted pages", "By hits; on a busy site, from a sample of them.", ["page", "hits, about"],
      () => pages.wanted.map((page) => [page.name, short(page.weight)])),
    table("not_stored", "Most often not stored", "Pages that were not answered from memory, with the reason.", ["page (reason)", "requests"],
      () => pages.not_stored.map((page) => [page.name, short(page.weight)])),
    table("clients", "Who uses PHP", "Where php_concurrency shares its time.", ["class, client and upstream", "last minute", "last hour"],
      () => pages.clients.map((client) => [client.name, seconds(client.weight / 1000), seconds(client.count / 1000)])),
    table("uses", "What PHP is used for", "By class, network, program and kind of page.", ["what, at which upstream", "last minute", "last hour"],
      () => pages.uses.map((use) => [use.name, seconds(use.weight / 1000), seconds(use.count / 1000)])),
    table("totals", "Since the start of the process", N.requests.help, ["cache status", "requests"],
      () => STATUSES.map((status) => [status, String(of(N.requests, { cache: status }))])),
    table("zones", "Zones", "", ["zone", "used", "budget", "stored", "on disk", "evicted", "purged"],
      () => named(N.zone_used_bytes, "zone").map((zone) => [zone, bytes(of(N.zone_used_bytes, { zone })), bytes(of(N.zone_budget_bytes, { zone })), short(of(N.zone_stored_responses, { zone })), onDisk(zone), short(of(N.zone_evictions, { zone })), short(of(N.zone_purged_responses, { zone }))])),
    table("learned", "Learned pages", "What cache_learn knows. Pages that differed would have been old. With auto, pages are kept by the shape of their address.", ["pool", "known", "kept", "compared: the same", "different", "shapes compared", "shapes kept", "shapes refuted"],
      () => named(N.learned_pages, "pool").map((pool) => [pool, ...[N.learned_pages, N.learned_pages_kept].map((number) => short(of(number, { pool }))),
        ...["fresh_same", "fresh_changed"].map((result) => short(of(N.learned_comparisons, { pool, result }))), ...["compared", "kept", "refuted"].map((state) => short(of(N.learned_shapes, { pool, state })))]),
      "cache_learn is off."),
    table("nodes", "Nodes that share purges", N.nodes_lease_held.help, ["lease", "nodes", "behind", "renewal", "waiting", "confirmed", "applied", "leases lost", "all void"],
      () => all(N.nodes_lease_held).map(() => [lease(), ...[N.nodes_members, N.nodes_entries_behind].map(single), seconds(all(N.nodes_renewal_seconds)[0]?.value ?? null), ...[N.nodes_waiting_purges, N.nodes_confirmed_purges, N.nodes_applied_purges, N.nodes_lost_leases, N.nodes_voids].map(single)]),
      "cache_nodes is off."),
    table("upstreams", "Upstreams", "", ["upstream", "busy", "limit", "idle", "in line", "failures", "servers not asked"],
      () => named(N.upstream_busy, "upstream").map((upstream) => [upstream, short(of(N.upstream_busy, { upstream })), of(N.upstream_limit, { upstream }) ? short(of(N.upstream_limit, { upstream })) : "-", short(of(N.upstream_idle, { upstream })), short(of(N.upstream_queued, { upstream })), short(of(N.upstream_requests, { upstream, outcome: "failure" })),
        short(sum(["failed", "checking", "unhealthy", "down"].map((standing) => of(N.upstream_servers, { upstream, standing }))))])),
  ];
  return () => {
    if (points.length) {
      const to = points[points.length - 1], from = points[Math.max(0, points.length - 2)];
      const hour = points.find((one) => one.at >= to.at - HOUR) ?? from;
      tiles.forEach((tile) => tile(from, to, hour));
    }
    plots.forEach((draw) => draw());
    tables.forEach((fill) => fill());
  };
}


// ---- looking ----

async function begin() {
  for (const one of await ask("table")) N[one.name] = one;
  const history = await ask("history=0");
  columns = history.columns;
  points = history.points.map(([moment, ...values]) => point(moment, values));
}

async function look() {
  latest = await ask("numbers");
  pages = await ask("pages");
  const newest = flattened(latest);
  const began = of(N.start_time_seconds, {}) * 1000;
  if (began > newest.at - HOUR && (!points.length || points[0].at > began)) points.unshift(point(began, []));
  if (!points.length || newest.at > points[points.length - 1].at) points.push(newest);
  // An hour, coarser where it is longer ago.
  const fine = newest.at - 2 * SHORT;
  let last = 0;
  points = points.filter((one) => {
    const keep = one.at >= fine || one.at - last >= 10000;
    if (keep) last = one.at;
    return keep && one.at >= newest.at - HOUR - 20000;
  });
}
