
"use strict";
// What all of the page uses: units, elements, tables, asking the server. What comes from it is only ever
// made text, never markup.

// ---- units ----

const sum = (values) => values.reduce((all, one) => all + one, 0);

function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(1) + " G";
  if (size >= 1e6) return (value / 1e6).toFixed(1) + " M";
  if (size >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return size >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(size < 1 ? 2 : 1);
}
const persec = (value) => short(value) + " /s";
const percent = (value) => value === null ? "–" : (value * 100).toFixed(1) + " %";
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 0.001) return (value * 1e6).toFixed(0) + " µs";
  if (value < 1) return (value * 1000).toFixed(value < 0.01 ? 1 : 0) + " ms";
  if (value < 120) return value.toFixed(1) + " s";
  if (value < 7200) return (value / 60).toFixed(0) + " min";
  return value < 172800 ? (value / 3600).toFixed(1) + " h" : (value / 86400).toFixed(1) + " days";
}
const milliseconds = (value) => seconds(value / 1000);
function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, size] of [["GB", 1073741824], ["MB", 1048576], ["kB", 1024]]) {
    if (value >= size) return (value / size).toFixed(1) + " " + unit;
  }
  return value.toFixed(0) + " B";
}
const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

// ---- elements ----

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}
function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
function label(x, y, text, anchor = "start") {
  const made = drawn("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}
function button(text, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}
function card(id, title, help, where) {
  const made = element("section", { id, class: "card", title: help ?? "" }, element("h2", {}, title));
  byId(where).append(made);
  return made;
}

// A table that becomes a list of cards on a narrow screen. Roles are spelt out: there, the style takes them
// from rows and cells. Cells are texts or elements; all columns but the first are numbers.
function grid(title, heads) {
  const body = element("tbody", { role: "rowgroup" });
  const cells = heads.map((name, column) => element("th", { role: "columnheader", scope: "col", class: column ? "number" : "" }, name));
  const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...cells));
  const made = element("table", { role: "table", class: "stack", "aria-label": title }, head, body);
  const names = cells.map((cell) => cell.textContent);
  const fill = (rows) => body.replaceChildren(...rows.map((row) => element("tr", { role: "row" }, ...row.map((cell, column) =>
    element("td", { role: "cell", class: column ? "number" : "", "data-head": names[column] }, cell)))));
  return { made, cells, fill };
}

// ---- asking ----

const KEPT = "mayfly-token";
let token = kept();    // Who looks; null: nobody that is known by name.
let about = null;      // Who may do what: null until it is known.

async function ask(what, method = "GET", as = token) {
  const headers = as ? { Authorization: "Bearer " + as } : {};
  const answer = await fetch("?" + what, { method, headers, cache: "no-store", credentials: "same-origin" });
  if (answer.ok) return answer.json();
  let message = "the server answers " + answer.status;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // It is no answer of the dashboard.
  }
  throw Object.assign(new Error(message), { status: answer.status });
}

// Until the tab is closed; where the browser keeps nothing, until the page is left.
function keep(given) {
  token = given;
  try {
    if (given) sessionStorage.setItem(KEPT, given);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // The visitor has forbidden it.
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
