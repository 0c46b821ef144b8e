// Draws the figures that travel as JSON in the page, in the colours of the reader's theme, and keeps the
// page of a running run up to date. Without it every table is complete.
"use strict";

const POLL_MS = 2000;
const NARROW_PX = 480;
const dark = matchMedia("(prefers-color-scheme: dark)");

// -- figures --------------------------------------------------------------------------------

function themed(value, names, style) {
  if (typeof value === "string") {
    return names[value] ? style.getPropertyValue("--" + names[value]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((each) => themed(each, names, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, themed(each, names, style)]));
  }
  return value;
}

// A phone has room for three ticks, shorter names and the short form of what is said in place of a point.
function narrowed(layout) {
  const { xaxis, yaxis } = layout;
  const last = xaxis.tickvals.length - 1;
  const kept = [0, xaxis.tickvals.indexOf(1), last];
  xaxis.tickvals = kept.map((place) => xaxis.tickvals[place]);
  xaxis.ticktext = kept.map((place) => xaxis.ticktext[place]);
  yaxis.tickfont = { size: 10 };
  layout.annotations.forEach((words) => { words.text = words.name || words.text; });
}

function draw(script) {
  const box = document.getElementById(script.dataset.figure);
  const figure = JSON.parse(script.textContent);
  const names = figure.layout.meta.tokens;
  delete figure.layout.meta;
  const { data, layout } = themed(figure, names, getComputedStyle(document.documentElement));
  if (box.clientWidth < NARROW_PX) narrowed(layout);
  return Plotly.react(box, data, layout, { responsive: true, displayModeBar: false });
}

function drawAll() {
  if (!window.Plotly) return;
  document.querySelectorAll("script[data-figure]").forEach(draw);
}

// -- a run that is going on -----------------------------------------------------------------

function renewRows(old, fresh) {
  const ids = (body) => Array.from(body.rows, (row) => row.id).join();
  if (ids(old) !== ids(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  Array.from(fresh.rows).forEach((row, place) => {
    if (row.outerHTML !== old.rows[place].outerHTML) old.rows[place].replaceWith(row);
  });
}

function renewPart(old, fresh) {
  if (old.outerHTML === fresh.outerHTML) return;
  const open = new Set(Array.from(old.querySelectorAll("tr:has(details[open])"), (row) => row.id));
  open.forEach((id) => fresh.querySelector(`#${CSS.escape(id)} details`)?.setAttribute("open", ""));
  if (old.matches("script[data-figure]")) {
    old.textContent = fresh.textContent;
    draw(old);
  } else {
    old.replaceWith(fresh);
  }
}

function renew(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const state = page.querySelector("[data-state]")?.dataset.state; // asked first: parts move from that page to this
  page.querySelectorAll("[data-part]").forEach((fresh) => {
    const old = document.querySelector(`[data-part="${CSS.escape(fresh.dataset.part)}"]`);
    if (old) renewPart(old, fresh);
  });
  const rows = document.querySelector("[data-rows]");
  const freshRows = page.querySelector("[data-rows]");
  if (rows && freshRows) renewRows(rows, freshRows);
  return state;
}

function follow(main) {
  const stale = document.createElement("p");
  stale.className = "notice";
  stale.setAttribute("role", "status");
  stale.textContent = "The server does not answer; the figures below may be out of date. Trying again.";
  const again = () => setTimeout(ask, POLL_MS);
  async function ask() {
    if (document.hidden) return again();
    try {
      const seen = encodeURIComponent(document.querySelector("[data-pulse]").dataset.pulse);
      const answer = await fetch(`${main.dataset.live}&seen=${seen}`);
      if (!answer.ok) throw new Error(answer.statusText);
      stale.remove();
      const nothingNew = answer.status === 204;
      if (nothingNew || renew(await answer.text()) === "running") again();
    } catch {
      main.prepend(stale);
      again();
    }
  }
  again();
  setInterval(tick, 1000);
}

function tick() {
  document.querySelectorAll("[data-since]").forEach((place) => {
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(place.dataset.since)) / 1000));
    place.textContent = seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  });
}

drawAll();
dark.addEventListener("change", drawAll);
const main = document.querySelector("main[data-live]");
if (main) follow(main);
