// The pages of a calibration and of a validation: measured rows (or bins of them, with weights).
const DENSE = 2500;
const BINS = {time: 70, error: 70};
const LEVEL = 90;
const ERRORS = [-90, -70, -50, -30, -20, -10, 0, 10, 20, 30, 50, 100, 200, 500, 900];
const FINE_ERRORS = [-30, -20, -15, -10, -5, -2, 0, 2, 5, 10, 15, 20, 30, 50];

const ROWS = DATA.rows && {
  measured: unpack(DATA.rows.measured), ratio: unpack(DATA.rows.ratio),
  inside: unpack(DATA.rows.inside), weight: unpack(DATA.rows.weight),
  dimensions: DATA.rows.dimensions.map((dimension) => ({...dimension, codes: unpack(dimension.codes)})),
};
const chosen = {by: null, view: "error", filters: {}};
let shown = ROWS ? range(ROWS.measured.length) : [];

const percent = (ratio) => 100 * (ratio - 1);
const weightOf = (rows) => rows.reduce((sum, i) => sum + ROWS.weight[i], 0);

// Quantiles of the ratios of rows, each row as often as its weight says.
function quantiles(rows, shares) {
  const order = [...rows].sort((a, b) => ROWS.ratio[a] - ROWS.ratio[b]);
  const total = weightOf(rows);
  const found = [];
  let below = 0;
  let next = 0;
  for (const i of order) {
    below += ROWS.weight[i];
    while (next < shares.length && below >= shares[next] * total) {
      found.push(ROWS.ratio[i]);
      next += 1;
    }
  }
  return found;
}

function worstShown() {
  const columns = DATA.worst;
  return range(columns.time_us.length).filter((i) => Object.entries(chosen.filters).every(([name, code]) =>
    code < 0 || !(name in columns) ||
    String(columns[name][i] || "(none)") === ROWS.dimensions.find((d) => d.name === name).words[code]));
}

const tileOf = (i) => ["block_m", "block_n", "block_k"].map((name) => DATA.worst[name][i]).join("×");
const problemOf = (i) => ["m", "n", "k"].map((name) => DATA.worst[name][i]).join("x");
const ratioOf = (i) => DATA.worst.time_us[i] / DATA.worst.time_us_measured[i];

// --- sections ---

function parity() {
  const t = theme();
  const asError = chosen.view === "error";
  const worst = worstShown();
  const y = (ratio, measured) => asError ? Math.log(ratio) : Math.log10(ratio * measured);
  const traces = [];
  const ratios = quantiles(shown, [0.002, 0.998]);
  const [low, high] = ratios.length ? ratios.map(Math.log) : [-0.1, 0.1];
  const reach = Math.max(-low, high, 0.1) * 1.15;
  let [least, most] = [Infinity, -Infinity];
  shown.forEach((i) => {
    least = Math.min(least, Math.log10(ROWS.measured[i]));
    most = Math.max(most, Math.log10(ROWS.measured[i]));
  });
  const span = Math.max(most - least, 0.1);
  const [bottom, top] = asError ? [-reach, reach] : [least, least + span];
  if (shown.length > DENSE) {
    const z = range(BINS.error).map(() => new Array(BINS.time).fill(null));
    shown.forEach((i) => {
      const column = Math.min(Math.floor(((Math.log10(ROWS.measured[i]) - least) / span) * BINS.time), BINS.time - 1);
      const row = Math.floor(((y(ROWS.ratio[i], ROWS.measured[i]) - bottom) / (top - bottom)) * BINS.error);
      if (row >= 0 && row < BINS.error) z[row][column] = (z[row][column] ?? 0) + ROWS.weight[i];
    });
    const ys = range(BINS.error).map((r) => bottom + ((r + 0.5) / BINS.error) * (top - bottom));
    const xs = range(BINS.time).map((c) => least + ((c + 0.5) / BINS.time) * span);
    const most10 = Math.max(...z.flat());
    traces.push({
      type: "heatmap", x: xs.map((x) => 10 ** x), y: ys.map((value) => asError ? value : 10 ** value),
      z: z.map((row) => row.map((value) => value && Math.log10(value))),
      customdata: z.map((row, r) => row.map((value) => [value, asError ? `${signed(percent(Math.exp(ys[r])))} %` : `${number(10 ** ys[r], 3)} µs`])),
      colorscale: [[0, t.few], [1, t.many]], hoverongaps: false, zmin: 0,
      colorbar: {title: {text: "rows", side: "right"}, thickness: 12, outlinewidth: 0, ...logTicks(most10)},
      hovertemplate: "%{customdata[0]} rows<br>measured about %{x:.3~g} µs, " +
        `${asError ? "error" : "predicted"} about %{customdata[1]}<extra></extra>`,
    });
  } else {
    traces.push({
      type: "scatter", mode: "markers", name: "rows", x: shown.map((i) => ROWS.measured[i]),
      y: shown.map((i) => asError ? Math.log(ROWS.ratio[i]) : ROWS.ratio[i] * ROWS.measured[i]),
      marker: {color: t.load, size: 5, opacity: 0.6}, customdata: shown.map((i) => signed(percent(ROWS.ratio[i]))),
      hovertemplate: "measured %{x:.4~g} µs<br>error %{customdata} %<extra></extra>",
    });
  }
  const columns = DATA.worst;
  traces.push({
    type: "scatter", mode: "markers", name: "greatest errors", x: worst.map((i) => columns.time_us_measured[i]),
    y: worst.map((i) => asError ? Math.log(ratioOf(i)) : columns.time_us[i]),
    marker: {color: t.mark, size: 5, symbol: "circle-open", line: {width: 1.3}},
    customdata: worst.map((i) => [problemOf(i), `${tileOf(i)}, ${columns.stages[i]} stages, ${columns.schedule[i]}`,
      plain(columns.group?.[i] ?? columns.kernel?.[i] ?? ""), number(columns.time_us[i]), signed(percent(ratioOf(i))), columns.limiter[i]]),
    hovertemplate: "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>measured %{x:.4~g} µs, predicted %{customdata[3]} µs<br>" +
      "error %{customdata[4]} %, limited by %{customdata[5]}<extra></extra>",
  });
  const logs = worst.map((i) => Math.log(ratioOf(i)));
  const extent = [Math.min(-reach, ...logs) * 1.05, Math.max(reach, ...logs) * 1.05];
  const errors = reach > 0.3 ? ERRORS : FINE_ERRORS;
  const marks = asError ? [0] : [];
  draw("parity", shown.length ? traces : [], {
    height: 460, showlegend: false,
    xaxis: axis(t, "measured time, µs", logarithmic(10 ** (least - 0.05), 10 ** (least + span + 0.05))),
    yaxis: asError
      ? axis(t, "error, %", {range: extent, tickvals: errors.map((error) => Math.log(1 + error / 100)), ticktext: errors.map((error) => (error > 0 ? `+${error}` : String(error).replace("-", "−")))})
      : axis(t, "predicted time, µs", logarithmic(10 ** (least - 0.05), 10 ** (least + span + 0.05))),
    shapes: [
      ...marks.map((at) => ({type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at, line: {color: t.ink, width: 1}})),
      ...(asError ? [] : [{type: "line", x0: 10 ** least, x1: 10 ** most, y0: 10 ** least, y1: 10 ** most, line: {color: t.ink, width: 1}}]),
    ],
  });
}

// [word, its rows] of the dimension that groups are compared by, in the words' order.
function groupsShown() {
  const dimension = ROWS.dimensions.find(({name}) => name === chosen.by);
  if (!dimension) return [["all", shown]];
  const groups = dimension.words.map((word) => [word, []]);
  shown.forEach((i) => groups[dimension.codes[i]][1].push(i));
  return groups.filter(([, rows]) => rows.length);
}

function residuals() {
  const t = theme();
  const groups = [["all", shown], ...(chosen.by ? groupsShown() : [])].filter(([, rows]) => rows.length);
  const found = groups.map(([word, rows]) => ({word, count: weightOf(rows), at: quantiles(rows, [0.05, 0.25, 0.5, 0.75, 0.95]).map(percent)}));
  const box = {
    type: "box", orientation: "h", y: found.map(({word}) => plain(word)), lowerfence: found.map(({at}) => at[0]), q1: found.map(({at}) => at[1]),
    median: found.map(({at}) => at[2]), q3: found.map(({at}) => at[3]), upperfence: found.map(({at}) => at[4]),
    line: {color: t.load, width: 1.5}, fillcolor: "rgba(86,180,233,0.25)", width: 0.6, hoverinfo: "skip",
  };
  const hover = {
    type: "scatter", mode: "markers", y: box.y, x: box.median, marker: {color: t.load, size: 7},
    customdata: found.map(({at, count}) => [...at.map(signed), count.toLocaleString("en")]),
    hovertemplate: "<b>%{y}</b>: %{customdata[5]} rows<br>median %{customdata[2]} %<br>middle half %{customdata[1]} to %{customdata[3]} %<br>" +
      "5 to 95 %: %{customdata[0]} to %{customdata[4]} %<extra></extra>",
  };
  draw("residuals", found.length ? [box, hover] : [], {
    height: 90 + 28 * found.length, showlegend: false, margin: {l: 60, r: 90, t: 12, b: 48},
    xaxis: axis(t, "error, %"), yaxis: axis(t, "", {type: "category", autorange: "reversed", showgrid: false}),
    annotations: found.map(({word, count}) => ({
      x: 1, xref: "paper", y: plain(word), text: `${count.toLocaleString("en")} rows`, xanchor: "left", xshift: 6, showarrow: false, font: {color: t.soft, size: 11},
    })),
    shapes: [{type: "line", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: {color: t.soft, dash: "dot"}}],
  });
}

// Wilson's 95 % interval of a share.
function wilson(hits, count) {
  const z = 1.96;
  const share = hits / count;
  const middle = (share + (z * z) / (2 * count)) / (1 + (z * z) / count);
  const half = (z / (1 + (z * z) / count)) * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count));
  return [middle - half, middle + half];
}

function coverage() {
  const t = theme();
  const found = [["all", shown], ...(chosen.by ? groupsShown() : [])].map(([word, rows]) => {
    const known = rows.filter((i) => ROWS.inside[i] < 2);
    const count = weightOf(known);
    const hits = weightOf(known.filter((i) => ROWS.inside[i] === 1));
    const [low, high] = wilson(hits, count);
    return {word, count, share: (100 * hits) / count, low: 100 * low, high: 100 * high};
  }).filter(({count}) => count);
  const trace = {
    type: "scatter", mode: "markers", y: found.map(({word}) => plain(word)), x: found.map(({share}) => share),
    error_x: {type: "data", symmetric: false, array: found.map(({high, share}) => high - share), arrayminus: found.map(({share, low}) => share - low),
      color: t.load, thickness: 1.5, width: 4},
    marker: {color: t.load, size: 8}, customdata: found.map(({low, high, count}) => [fixed(1)(low), fixed(1)(high), count.toLocaleString("en")]),
    hovertemplate: "<b>%{y}</b>: %{x:.1f} % of %{customdata[2]} rows<br>%{customdata[0]} to %{customdata[1]} %<extra></extra>",
  };
  const least = Math.min(...found.map(({low}) => low), 80);
  draw("coverage", found.length ? [trace] : [], {
    height: 90 + 26 * found.length, xaxis: axis(t, "rows in the 90 % interval, %", {range: [Math.max(least - 2, 0), 100.5]}),
    yaxis: axis(t, "", {type: "category", autorange: "reversed"}),
    shapes: [{type: "line", x0: LEVEL, x1: LEVEL, yref: "paper", y0: 0, y1: 1, line: {color: t.mark, dash: "dot", width: 1.5}}],
  }, "This machine's file does not say how sure its times are: there are no intervals.");
}

function regret() {
  const t = theme();
  const {tries, mean, p95, max, curve, share, chance, problems, choices} = DATA.regret;
  const lines = [["greatest", max, t.soft, "dot"], ["95 % of problems", p95, t.latency, "dash"], ["mean", mean, t.load, "solid"]];
  const traces = lines.map(([name, values, color, dash]) => ({
    type: "scatter", mode: "lines+markers", name, x: tries, y: values, line: {color, dash, width: 2}, marker: {color, size: 6},
    hovertemplate: `best of %{x} measured<br>${name}: %{y:.3f}<extra></extra>`,
  }));
  traces.push({
    type: "scatter", mode: "lines", name: "problems", x: curve, y: share.map((value) => 100 * value), xaxis: "x2", yaxis: "y2",
    line: {color: t.load, width: 2, shape: "hv"}, showlegend: false, hovertemplate: "%{y:.1f} % of problems: at most %{x:.3f}<extra></extra>",
  });
  draw("regret", traces, {
    height: 360, margin: {l: 60, r: 16, t: 30, b: 48},
    xaxis: axis(t, "configurations measured, the fastest predicted first", {type: "log", tickvals: tries.filter((k) => ![4, 7, 14].includes(k)), domain: [0, 0.46]}),
    yaxis: axis(t, "measured time over the best"),
    xaxis2: axis(t, "measured time over the best", {domain: [0.56, 1], anchor: "y2"}),
    yaxis2: axis(t, "share of problems, %", {anchor: "x2", range: [0, 101]}),
    annotations: [{
      x: 1, xref: "paper", xanchor: "right", y: 0.04, yref: "paper", yanchor: "bottom", showarrow: false, align: "right", font: {color: t.soft, size: 11},
      text: `${problems.toLocaleString("en")} problems of ${number(choices)} configurations (median)<br>drawn at random: ${fixed(2)(chance)}`,
    }],
  });
}

function worst() {
  const columns = DATA.worst;
  const fields = Object.keys(columns).filter((name) => !["m", "n", "k", "block_m", "block_n", "block_k", "time_us", "time_us_measured", "limiter"].includes(name));
  table("worst", [
    {title: "problem", get: problemOf, left: true},
    {title: "tile", get: tileOf, left: true},
    ...fields.map((name) => ({title: name, get: (i) => columns[name][i], left: typeof columns[name][0] !== "number"})),
    {title: "measured µs", get: (i) => columns.time_us_measured[i], format: number},
    {title: "predicted µs", get: (i) => columns.time_us[i], format: number},
    {title: "error %", get: (i) => percent(ratioOf(i)), format: signed},
    {title: "limiter", get: (i) => columns.limiter[i], left: true},
  ], worstShown());
}

function groups() {
  const written = (name) => (value) => value === null ? "–" : Number.isInteger(value) && !(name in DATA.digits)
    ? value.toLocaleString("en") : fixed(DATA.digits[name] ?? 2)(value);
  table("groups", [
    {title: "rows of", get: (row) => `${row.column} ${row.word}`.trim(), left: true},
    ...Object.entries(DATA.headings).map(([name, title]) => ({title, get: (row) => row[name], format: written(name)})),
  ], DATA.figures, Infinity);
}

function parameters() {
  const t = theme();
  const rows = DATA.parameters.filter(({status, value, typical}) => status === "fitted" && value > 0 && typical > 0);
  const over = rows.map(({value, typical}) => value / typical);
  const factor = rows.map((row) => Math.exp(1.96 * row.standard_error));
  const ends = over.flatMap((x, i) => [x * factor[i], x / factor[i]]);
  const trace = {
    type: "scatter", mode: "markers", y: rows.map(({name}) => name), x: over,
    error_x: {type: "data", symmetric: false, array: over.map((x, i) => x * (factor[i] - 1)), arrayminus: over.map((x, i) => x * (1 - 1 / factor[i])),
      color: t.load, thickness: 1.5, width: 4},
    marker: {color: t.load, size: 8},
    customdata: rows.map((row) => [number(row.value), plain(row.unit), fixed(1)(100 * row.standard_error), number(row.typical), plain(row.meaning)]),
    hovertemplate: "<b>%{y}</b>: %{customdata[4]}<br>%{customdata[0]} %{customdata[1]} ± %{customdata[2]} %<br>typical %{customdata[3]}<extra></extra>",
  };
  draw("parameters", rows.length ? [trace] : [], {
    height: 90 + 22 * rows.length,
    xaxis: axis(t, "fitted value over typical value", logarithmic(Math.min(...ends, 1) / 1.1, Math.max(...ends, 1) * 1.1)), yaxis: axis(t, "", {type: "category", autorange: "reversed"}),
    shapes: [{type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: {color: t.soft, dash: "dot"}}],
  }, "No parameter was fitted.");
}

function values() {
  const infinite = (value) => value === null ? "∞" : number(value);
  table("values", [
    {title: "parameter", get: (row) => row.name, left: true},
    {title: "value", get: (row) => row.value, format: infinite},
    {title: "± %", get: (row) => row.standard_error && 100 * row.standard_error, format: fixed(1)},
    {title: "unit", get: (row) => row.unit, left: true},
    {title: "start", get: (row) => row.start, format: infinite},
    {title: "status", get: (row) => row.status, left: true},
    {title: "meaning", get: (row) => row.meaning, left: true},
  ], DATA.parameters.filter(({status}) => status !== "fixed"), Infinity);
}

function correlations() {
  const t = theme();
  const {names, values} = DATA.correlations;
  draw("correlations", names.length ? [{
    type: "heatmap", x: names, y: names, z: values, zmin: -1, zmax: 1, colorscale: "RdBu", xgap: 1, ygap: 1,
    colorbar: {title: {text: "correlation", side: "right"}, thickness: 12, outlinewidth: 0},
    hovertemplate: "%{y}<br>%{x}<br><b>%{z:.2f}</b><extra></extra>",
  }] : [], {
    height: 260 + 17 * names.length,
    xaxis: axis(t, "", {type: "category", tickangle: -90, showgrid: false, ticks: "", tickfont: {size: 10}}),
    yaxis: axis(t, "", {type: "category", autorange: "reversed", showgrid: false, ticks: "", tickfont: {size: 10}}),
  });
}

function ablations() {
  const t = theme();
  const [whole, ...terms] = DATA.ablations;
  const trace = {
    type: "bar", orientation: "h", y: terms.map(({term}) => plain(term)), x: terms.map(({earned_pct: earned}) => earned),
    marker: {color: terms.map(({earned_pct: earned}) => (earned > 0 ? t.load : t.latency))},
    customdata: terms.map((row) => [fixed(2)(row.mape_pct), fixed(2)(row.p95_ape_pct), fixed(2)(row.earned_pct), plain(row.parameters)]),
    hovertemplate: "without <b>%{y}</b><br>%{customdata[3]}<br>mean error %{customdata[0]} % (%{customdata[2]} points more)<br>" +
      "95 % of errors below %{customdata[1]} %<extra></extra>",
  };
  draw("ablations", terms.length ? [trace] : [], {
    height: 90 + 20 * terms.length,
    xaxis: axis(t, `mean error that the term saves, points (whole model: ${fixed(2)(whole?.mape_pct ?? NaN)} %)`),
    yaxis: axis(t, "", {type: "category", autorange: "reversed"}),
  });
}

// --- the page ---

const SECTIONS = {regret, parity, residuals, parameters, values, correlations, ablations, coverage, worst, groups};

function filters() {
  const form = $("#filters");
  form.onsubmit = (event) => event.preventDefault();
  ROWS.dimensions.filter(({filter}) => filter).forEach((dimension) => {
    chosen.filters[dimension.name] = -1;
    choice(form, dimension.name, [[-1, "all"], ...dimension.words.map((word, code) => [code, word])], -1, (value) => {
      chosen.filters[dimension.name] = Number(value);
      update();
    });
  });
  if (ROWS.dimensions.length) {
    chosen.by = (ROWS.dimensions.find(({name}) => name !== "split") ?? ROWS.dimensions[0]).name;
    choice(form, "compare by", ROWS.dimensions.map(({name}) => [name, name]), chosen.by, (value) => {
      chosen.by = value;
      update();
    });
  }
  form.append(make("span", {id: "count", data: {role: "status"}}));
}

function countText() {
  const words = ROWS.dimensions.filter(({name}) => chosen.filters[name] >= 0).map(({name, words: own}) => `${name} ${own[chosen.filters[name]]}`);
  return `${weightOf(shown).toLocaleString("en")} rows${words.length ? `: ${words.join(", ")}` : ""}`;
}

function update() {
  const active = ROWS.dimensions.filter(({name}) => chosen.filters[name] >= 0);
  shown = range(ROWS.measured.length).filter((i) => active.every(({name, codes}) => codes[i] === chosen.filters[name]));
  $("#count").textContent = countText();
  redraw();
}

function header() {
  const row = (word) => DATA.figures?.find((figures) => figures.word === word);
  const figures = row("held out") ?? row("all") ?? row("training");
  const entries = figures ? [
    [`${figures.word === "all" ? "" : `${figures.word} `}rows`, number(figures.rows), `of ${number(figures.problems)} problems`],
    ["mean error", `${fixed(2)(figures.mape_pct)} %`, `median ${fixed(2)(figures.median_ape_pct)} %`],
    ["95 % of errors below", `${fixed(1)(figures.p95_ape_pct)} %`, `greatest ${fixed(0)(figures.max_ape_pct)} %`],
    ["regret", fixed(3)(figures.regret_mean), `95 % of problems below ${fixed(3)(figures.regret_p95)}`],
    ["in the 90 % interval", figures.coverage_90_pct === null ? "–" : `${fixed(1)(figures.coverage_90_pct)} %`],
  ] : [];
  if (DATA.kind === "calibration") {
    const count = (status) => DATA.parameters.filter((one) => one.status === status).length;
    entries.push(["parameters", `${count("fitted")} fitted`, `${count("undetermined") + count("no effect")} held`]);
  }
  facts(entries);
  notes([
    ...(DATA.rows?.binned ? [`${number(DATA.count)} rows, in bins: the errors that figures show are exact to ${number(50 * DATA.rows.error_bin, 2)} %.`] : []),
    ...(DATA.kind === "calibration" && !DATA.rows ? ["This report has no rows.parquet: no errors row by row."] : []),
  ]);
  $("#subtitle").textContent = DATA.kind === "calibration"
    ? `A machine's parameters, fitted to ${DATA.origin.table ?? "measured times"}${DATA.origin.start ? `, starting from ${DATA.origin.start}` : ""}.`
    : "Predicted against measured times.";
}

header();
if (ROWS) {
  filters();
  choice($("#parity .controls"), "view", [["error", "error"], ["time", "predicted time"]], "error", (value) => {
    chosen.view = value;
    parity();
  });
  $("#count").textContent = countText();
}
const redraw = start(SECTIONS);
