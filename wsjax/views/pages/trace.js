// The page of a timeline: the whole kernel in shares of the time, or what is zoomed into slice by slice.
const MANY = 1500;
const BINS = 240;
const HEIGHT = 0.74;
const LOW = 0.46;
const [LAUNCH, WAVE, COLD, WAIT, QUEUE, LOAD, COMPUTE, EPILOGUE] = range(8);
const ORDER = [COMPUTE, LOAD, EPILOGUE, QUEUE, COLD, WAIT];

const COLUMNS = ["track", "kind", "begin", "end", "step", "steps", "critical"];
const unpackAll = (table) => Object.fromEntries(Object.entries(table).map(([name, values]) => [name, unpack(values)]));
const PREDICTED = unpackAll(DATA.slices);
const MEASURED = DATA.measured.map((one) => ({...one, slices: unpackAll(one.slices)}));
const RING = unpackAll(DATA.ring);
const PATH = unpackAll(DATA.path);
let view = 0;
let zoom = null;

const window_ = () => DATA.windows[view];
const span = () => zoom ?? [window_().begin, window_().end];

function colours(t) {
  return {
    [LAUNCH]: t.soft, [COLD]: `${t.latency}66`, [WAIT]: t.line, [QUEUE]: `${t.load}66`, [LOAD]: t.load,
    [COMPUTE]: t.compute, [EPILOGUE]: "#cc79a7",
  };
}

// The rows from top to bottom, with the slices of each shifted to the shown time axis.
function rows() {
  const found = ["output tiles", ...DATA.labels.slice(1)].map((label, track) => ({label, track, slices: PREDICTED, shift: 0}));
  MEASURED.forEach((one, place) => one.labels.forEach((label, track) => found.push({
    label: `${label}, measured`, track, slices: one.slices, shift: window_().shift[place],
  })));
  return found;
}

// The slices of a row that overlap a span: positions in its arrays.
function visible({track, slices, shift}, [begin, end]) {
  const {track: tracks, begin: begins, end: ends} = slices;
  return range(tracks.length).filter((i) =>
    tracks[i] === track && ends[i] + shift > begin && begins[i] + shift < end);
}

const NAMES = ["launch", "output tile", "cold first wave", "wait", "queue for the transfer", "load", "compute", "epilogue"];

function describe({slices, shift}, i) {
  const {kind, begin, end, step, steps} = Object.fromEntries(COLUMNS.map((name) => [name, slices[name][i]]));
  const tile = Math.floor(step / DATA.k_tiles);
  const which = kind === LAUNCH ? "" : kind === WAVE ? `tile ${tile + 1}` : steps > 1
    ? `${number(steps)} steps from step ${step % DATA.k_tiles} of tile ${tile + 1}`
    : `step ${step % DATA.k_tiles} of tile ${tile + 1}, slot ${step % DATA.depth}`;
  const moved = shift ? `<br>measured at ${fixed(3)(begin)} µs of its CTA` : "";
  return `<b>${NAMES[kind]}</b> ${fixed(3)(end - begin)} µs${slices.critical[i] ? ", critical" : ""}<br>${which}`
    + `<br>${fixed(3)(begin + shift)} to ${fixed(3)(end + shift)} µs${moved}`;
}

function bar(kind, t) {
  return {
    type: "bar", orientation: "h", base: [], x: [], y: [], width: [], text: [], hovertext: [], name: NAMES[kind],
    hoverinfo: "text", textposition: "inside", insidetextanchor: "middle", textangle: 0, cliponaxis: true,
    marker: {color: kind === WAVE ? [] : colours(t)[kind], line: {color: t.paper, width: 0.6}},
    insidetextfont: {color: kind === WAVE ? t.ink : t.paper, size: 11}, legendgroup: NAMES[kind],
    showlegend: kind !== WAVE,
  };
}

function slice(trace, row, place, i, t, range_) {
  const {kind, begin, end, step} = row.slices;
  const low = kind[i] === WAIT || kind[i] === COLD;
  const wave = kind[i] === WAVE;  // only what is seen of it, so that its number is
  const from = wave ? Math.max(begin[i], range_[0]) : begin[i] + row.shift;
  const to = wave ? Math.min(end[i], range_[1]) : end[i] + row.shift;
  trace.base.push(from);
  trace.x.push(to - from);
  trace.y.push(place);
  trace.width.push(low ? LOW : HEIGHT);
  trace.hovertext.push(describe(row, i));
  const tile = Math.floor(step[i] / DATA.k_tiles);
  trace.text.push(kind[i] === WAVE ? `${tile + 1}` : kind[i] === LOAD || kind[i] === COMPUTE ? `${step[i] % DATA.k_tiles}` : "");
  if (kind[i] === WAVE) trace.marker.color.push(i % 2 ? t.panel : t.line);
}

// How long the slices of each kind last in each of BINS parts of a span, as shares.
function shares(row, found, [begin, end]) {
  const width = (end - begin) / BINS;
  const spent = Object.fromEntries(ORDER.map((kind) => [kind, new Float64Array(BINS)]));
  for (const i of found) {
    const from = Math.max(row.slices.begin[i] + row.shift, begin);
    const to = Math.min(row.slices.end[i] + row.shift, end);
    const sums = spent[row.slices.kind[i]];
    if (!sums) continue;
    for (let at = Math.floor((from - begin) / width); at < BINS && begin + at * width < to; at++) {
      const part = Math.min(to, begin + (at + 1) * width) - Math.max(from, begin + at * width);
      sums[at] += Math.max(part, 0) / width;
    }
  }
  return spent;
}

function shared(traces, row, place, found, range_) {
  const spent = shares(row, found, range_);
  const width = (range_[1] - range_[0]) / BINS;
  for (const at of range(BINS)) {
    let level = place + HEIGHT / 2;
    const words = ORDER.filter((kind) => spent[kind][at] > 0.005)
      .map((kind) => `${NAMES[kind]} ${fixed(0)(100 * spent[kind][at])} %`).join("<br>");
    for (const kind of ORDER) {
      const height = HEIGHT * Math.min(spent[kind][at], 1);
      if (height < 0.004) continue;
      const trace = traces[kind];
      trace.base.push(range_[0] + at * width);
      trace.x.push(width);
      trace.y.push(level - height / 2);
      trace.width.push(height);
      trace.text.push("");
      trace.hovertext.push(`${fixed(2)(range_[0] + at * width)} µs<br>${words}`);
      level -= height;
    }
  }
}

// The critical path: its events as lines under their bars, dotted between them.
function path(range_, t) {
  const solid = {x: [], y: []}, dotted = {x: [], y: []};
  for (let i = 0; i < PATH.time.length; i += 2) {
    if (PATH.time[i + 1] < range_[0] || PATH.time[i] > range_[1]) continue;
    const xs = [PATH.time[i], PATH.time[i + 1]], ys = [PATH.track[i] + 0.43, PATH.track[i + 1] + 0.43];
    solid.x.push(...xs, null);
    solid.y.push(...ys, null);
    dotted.x.push(...xs);
    dotted.y.push(...ys);
  }
  const common = {mode: "lines", hoverinfo: "skip", legendgroup: "path", name: "critical path"};
  return [
    {...common, ...dotted, line: {color: t.mark, width: 1.2, dash: "dot"}, showlegend: false},
    {...common, ...solid, line: {color: t.mark, width: 3}},
  ];
}

function ring(range_, t) {
  const {time, filled, loading} = RING;
  let first = 0, last = time.length;
  while (first + 1 < last && time[first + 1] < range_[0]) first++;
  while (last - 2 > first && time[last - 2] > range_[1]) last--;
  const stride = Math.max(1, Math.ceil((last - first) / 4000));
  const at = range(last - first).filter((i) => i % stride === 0).map((i) => first + i);
  const x = at.map((i) => time[i]);
  const common = {x, mode: "lines", line: {shape: "hv", width: 0}, xaxis: "x", yaxis: "y2", stackgroup: "slots"};
  return [
    {...common, y: at.map((i) => filled[i]), fillcolor: t.load, name: "slots filled", hovertemplate: "%{y} filled<extra></extra>"},
    {...common, y: at.map((i) => loading[i]), fillcolor: `${t.load}55`, name: "slots loading", hovertemplate: "%{y} loading<extra></extra>"},
  ];
}

function timeline() {
  const t = theme();
  const range_ = span();
  const shown = rows();
  const found = shown.map((row) => visible(row, range_));
  const many = found.slice(1).reduce((sum, one) => sum + one.length, 0) > MANY;
  const traces = Object.fromEntries(range(8).map((kind) => [kind, bar(kind, t)]));
  shown.forEach((row, place) => {
    if (many && place > 0) shared(traces, row, place, found[place], range_);
    else found[place].forEach((i) => slice(traces[row.slices.kind[i]], row, place, i, t, range_));
  });
  if (many) Object.values(traces).forEach((trace) => trace !== traces[WAVE] && (trace.marker.line.width = 0));
  const drawn = Object.values(traces).filter((trace) => trace.x.length);
  const lines = many ? [] : path(range_, t);
  const detail = many ? [] : ring(range_, t);
  const bottom = many ? 0 : 0.24;
  const place = draw("timeline", [...drawn, ...lines, ...detail], {
    barmode: "overlay", bargap: 0, uniformtext: {mode: "hide", minsize: 8}, dragmode: "pan",
    height: 150 + 46 * shown.length + (many ? 0 : 130),
    margin: {l: 150, r: 16, t: 12, b: 48},
    xaxis: axis(t, "µs since the kernel's begin", {range: range_, anchor: many ? "y" : "y2", zeroline: false, minallowed: 0}),
    yaxis: {
      domain: [bottom, 1], range: [shown.length - 0.4, -0.6], fixedrange: true, zeroline: false, showgrid: false,
      tickvals: range(shown.length), ticktext: shown.map(({label}) => label), ticks: "",
    },
    ...(many ? {} : {yaxis2: {
      domain: [0, 0.17], range: [0, DATA.depth * 1.1], fixedrange: true, showgrid: false, zeroline: false,
      tickvals: [0, DATA.depth], title: {text: "ring slots", standoff: 8}, ticks: "",
    }}),
    shapes: shown.length > DATA.labels.length ? [{
      type: "line", xref: "paper", x0: 0, x1: 1, y0: DATA.labels.length - 0.5, y1: DATA.labels.length - 0.5,
      line: {color: t.soft, width: 1},
    }] : [],
  });
  if (!place.listens) {
    place.listens = true;
    place.on("plotly_relayout", zoomed);
  }
}

function zoomed(event) {
  const begin = event["xaxis.range[0]"] ?? event["xaxis.range"]?.[0];
  const end = event["xaxis.range[1]"] ?? event["xaxis.range"]?.[1];
  if (begin !== undefined && end !== undefined) zoom = [Math.max(begin, 0), Math.min(end, DATA.time)];
  else if (event["xaxis.autorange"]) zoom = null;
  else return;
  timeline();
}

facts(DATA.facts);
notes(DATA.notes);
$("#subtitle").textContent = DATA.subtitle;
DATA.windows.forEach(({name}, place) => $("#timeline .controls").append(make("button", {
  type: "button", textContent: name, onclick: () => {
    view = place;
    zoom = null;
    timeline();
  },
})));
view = Math.min(1, DATA.windows.length - 1);
CONFIG.scrollZoom = true;
start({timeline});
