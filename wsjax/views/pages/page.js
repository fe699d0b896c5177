// What all pages share: data, theme, figures, tables.
const DATA = JSON.parse(document.getElementById("data").textContent);
const ARRAYS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array};
const PRINT_WIDTH = 690;
const PAGE_ROWS = 15;
const MORE_ROWS = 100;

function unpack({type, bytes}) {
  const text = atob(bytes);
  const raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  return new ARRAYS[type](raw.buffer);
}

const $ = (selector, within = document) => within.querySelector(selector);
const range = (count) => Array.from({length: count}, (_, i) => i);
const distinct = (values) => [...new Set(values)];

function make(tag, properties = {}, ...children) {
  const {data, ...plain} = properties;
  const element = Object.assign(document.createElement(tag), plain);
  Object.entries(data ?? {}).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

// Four digits, or all of a whole number.
function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  if (Math.abs(value) >= 10 ** digits || (value !== 0 && Math.abs(value) < 1e-3)) {
    return Math.abs(value) < 1e9 && Math.abs(value) >= 1
      ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
  }
  const behind = value === 0 ? 0 : digits - 1 - Math.floor(Math.log10(Math.abs(value)));
  return value.toLocaleString("en", {
    minimumFractionDigits: Math.max(behind, 0), maximumFractionDigits: Math.max(behind, 0),
  });
}

const fixed = (digits) => (value) =>
  value === null || !Number.isFinite(value) ? "–" : value.toLocaleString("en", {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
  });
const plainly = (value) => Number(value.toPrecision(6)).toLocaleString("en", {maximumFractionDigits: 9});
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${fixed(1)(Math.abs(value))}`;

// Plotly reads some HTML in labels: a user's words must not be any.
const plain = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function quantile(sorted, share) {
  if (!sorted.length) return NaN;
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

// --- theme ---

function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "paper", "panel", "line", "accent", "load", "compute", "latency", "mark", "few", "many"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function axis(t, title, more = {}) {
  return {
    title: {text: title, standoff: 8}, gridcolor: t.line, linecolor: t.line, zerolinecolor: t.line,
    automargin: true, ticks: "outside", tickcolor: t.line, ...more,
  };
}

// A logarithmic axis from one value to another, whose ticks are plain numbers.
function logarithmic(low, high) {
  const decades = Math.log10(high / low);
  const steps = decades > 3 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 3, 4, 5, 7];
  const first = Math.floor(Math.log10(low)) - 1;
  const values = range(Math.ceil(decades) + 4).flatMap((i) => steps.map((step) => step * 10 ** (first + i)));
  return {
    type: "log", range: [Math.log10(low), Math.log10(high)], tickvals: values, ticktext: values.map((value) => plainly(value)),
    minor: {dtick: "D1", showgrid: false, ticks: "outside", ticklen: 3},
  };
}

// Ticks of a colour bar over decimal logarithms of counts.
function logTicks(most) {
  const values = range(10).flatMap((i) => [1, 2, 5].map((step) => step * 10 ** i)).filter((value) => value <= most);
  const few = values.length > 8 ? values.filter((value) => Number.isInteger(Math.log10(value))) : values;
  return {tickvals: few.map(Math.log10), ticktext: few.map(plainly)};
}

// --- figures ---

const CONFIG = {
  displaylogo: false, responsive: true, scrollZoom: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  toImageButtonOptions: {scale: 2, format: "png"},
};

const isPrinting = () => document.documentElement.classList.contains("printing");

// Draw `traces` in section `name`; without any, the words `empty`.
function draw(name, traces, layout, empty = "Nothing to show.") {
  const place = $(`#${name} .figure`);
  if (!traces.length) {
    Plotly.purge(place);
    place.style.height = "auto";
    place.replaceChildren(make("p", {className: "empty", textContent: empty}));
    return place;
  }
  if ($(".empty", place)) place.replaceChildren();
  const t = theme();
  const font = getComputedStyle(document.body).fontFamily;
  const printing = isPrinting();
  place.style.height = `${layout.height}px`;
  Plotly.react(place, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: "zoom",
    font: {family: font, size: 12, color: t.ink}, margin: {l: 60, r: 16, t: 12, b: 48},
    hoverlabel: {bgcolor: t.panel, bordercolor: t.line, font: {color: t.ink, family: font}, align: "left"},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, xanchor: "left"},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: t.soft, activecolor: t.ink},
    ...layout,
    ...(printing ? {width: PRINT_WIDTH, autosize: false} : {autosize: true}),
  }, CONFIG);
  return place;
}

// --- tables ---

// Words that may go on in a new line behind an underscore, and nowhere else.
const breakable = (text) => text.replaceAll(" ", "\u00a0").replaceAll("_", "_\u200b");

// columns: [{title, get(row), format?, left?, hint?, action?(row)}]; rows in their first order, of
// which so many are shown at first.
function table(name, columns, rows, first = PAGE_ROWS) {
  const place = $(`#${name} .table`);
  const state = place.state ??= {column: null, down: false, shown: first};
  if (state.titles !== columns.map((column) => column.title).join()) {
    Object.assign(state, {column: null, titles: columns.map((column) => column.title).join()});
  }
  state.shown = first;
  const sorted = () => {
    if (state.column === null) return rows;
    const {get} = columns[state.column];
    const sign = state.down ? -1 : 1;
    return rows.map((row) => [get(row), row]).sort(([a], [b]) =>
      a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * sign).map(([, row]) => row);
  };
  const cell = (column, row) => {
    const value = column.get(row);
    const text = column.format ? column.format(value) : value ?? "–";
    const inside = column.action
      ? make("button", {type: "button", textContent: text, title: column.hint, onclick: () => column.action(row)})
      : String(text);
    return make("td", {className: column.left ? "" : "right"}, inside);
  };
  const render = () => {
    const head = columns.map((column, i) => make("th", {
      className: column.left ? "" : "right", scope: "col", title: column.hint ?? "",
      data: state.column === i ? {"aria-sort": state.down ? "descending" : "ascending"} : {},
    }, make("button", {type: "button", textContent: breakable(column.title), onclick: () => {
      Object.assign(state, {down: state.column === i && !state.down, column: i});
      render();
    }})));
    const body = sorted().slice(0, state.shown).map((row) =>
      make("tr", {}, ...columns.map((column) => cell(column, row))));
    const hidden = rows.length - body.length;
    const more = make("p", {className: "more"});
    if (hidden > 0) {
      more.append(`${body.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown `,
        make("button", {type: "button", textContent: `${Math.min(hidden, MORE_ROWS)} more`, onclick: () => {
          state.shown += MORE_ROWS;
          render();
        }}));
    }
    place.replaceChildren(
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)), more);
    if (!rows.length) place.replaceChildren(make("p", {className: "empty", textContent: "Nothing to show."}));
  };
  render();
}

// --- choices ---

// A drop-down list; options: [[value, text]]. `change(value)` is called with what is chosen.
function choice(place, title, options, value, change) {
  const select = make("select", {}, ...options.map(([key, text]) => make("option", {value: key, textContent: text})));
  select.value = value;
  select.onchange = () => change(select.value);
  place.append(make("label", {}, title, select));
  return select;
}

function facts(entries) {
  $("#facts").replaceChildren(...entries.map(([name, value, note]) => make("div", {},
    make("dt", {textContent: name}),
    make("dd", {}, `${value} `, make("small", {textContent: note ?? ""})))));
}

function notes(lines) {
  $("#notes").replaceChildren(...lines.map((line) => make("li", {textContent: line})));
}

// Fill a page's sections: tables at once, figures when plotly.js is there (`figures`) and they come
// near the window. The function that is returned does it again, for other choices.
let figures = () => {};

function start(sections) {
  const names = Object.keys(sections).filter((name) => document.getElementById(name));
  const near = new Set();
  const stale = new Set(names);
  const fill = (name) => {
    const isFigure = $(`#${name} .figure`);
    if (!stale.has(name) || (isFigure && !(window.Plotly && near.has(name)))) return;
    stale.delete(name);
    sections[name]();
  };
  const refill = () => {
    names.forEach((name) => stale.add(name));
    names.forEach(fill);
  };
  const print = (printing) => {
    document.documentElement.classList.toggle("printing", printing);
    names.forEach((name) => sections[name]());
  };
  figures = () => {
    const observer = new IntersectionObserver((entries) => entries.forEach(({target, isIntersecting}) => {
      near[isIntersecting ? "add" : "delete"](target.id);
      fill(target.id);
      document.documentElement.dataset.ready ??= performance.now().toFixed(0);
    }), {rootMargin: "300px"});
    names.forEach((name) => observer.observe(document.getElementById(name)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refill);
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
  };
  names.forEach(fill);
  return refill;
}
