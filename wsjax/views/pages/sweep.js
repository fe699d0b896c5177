// The table, the machines and the heat map of a sweep.

function best() {
  const single = shown.length === 1;
  const settings = DATA.setting_names.map((name, i) => ({title: name, get: (row) => settingOf(row.cell)[i]}));
  const kernel = [
    {title: "tile", get: (row) => tileName(row.c), left: true},
    {title: "stages", get: (row) => K.stages[row.c]},
    {title: "schedule", get: (row) => DATA.schedules[K.schedule[row.c]], left: true},
    ...settings,
  ];
  const figures = [
    {title: "time µs", get: (row) => row.time, format: number},
    {title: "TFLOP/s", get: (row) => rate(row.p, row.time), format: number},
    {title: "of roof", hint: "of the roofline's rate", get: (row) => roof(row.p) && rate(row.p, row.time) / roof(row.p),
      format: (value) => value === null ? "–" : `${Math.round(100 * value)} %`},
    {title: "limiter", get: (row) => DATA.limiters[limiterOf(row.cell)], left: true},
  ];
  if (single) {
    const [p] = shown;
    const rows = kernelsShown().filter((c) => isThere(cellOf(p, c)))
      .map((c) => ({p, c, cell: cellOf(p, c), time: bestOf(p) * slowdownOf(cellOf(p, c))}))
      .sort((a, b) => a.time - b.time);
    const over = {title: "over best", get: (row) => row.time / bestOf(p), format: fixed(3)};
    table("best", [...kernel, figures[0], over, ...figures.slice(1)], rows);
    return;
  }
  const named = P.shown.map((name, i) => ({
    title: name, get: (row) => P[name][row.p], left: typeof P[name][0] === "string",
    ...(i === 0 ? {action: (row) => select(P.label[row.p]), hint: "show only this problem"} : {}),
  }));
  const near = {title: "near", hint: "kernels within 2 %", get: (row) => row.near};
  table("best", [...named, ...kernel, ...figures, near], leaders());
}

function machines() {
  const t = theme();
  const kernels = kernelsShown();
  const first = new Map(shown.map((p) => [p, fastest(p, kernels, 0)]));
  const compared = DATA.machines.map(({label, short}, i) => {
    const ratios = shown.map((p) => [fastest(p, kernels, i), first.get(p)])
      .filter(([own, other]) => own && other).map(([own, other]) => own.time / other.time);
    const logs = ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length;
    return {label, short, mean: Math.exp(logs), least: Math.min(...ratios), most: Math.max(...ratios), count: ratios.length};
  }).filter((row) => row.count).sort((a, b) => a.mean - b.mean);
  const rows = compared.slice(0, MOST_MACHINES);
  const told = plain(DATA.machines[0].told_by) +
    (rows.length < DATA.all_machines ? ` (fastest ${rows.length} of ${DATA.all_machines.toLocaleString("en")})` : "");
  const trace = {
    type: "scatter", mode: "markers", y: rows.map((row) => plain(row.short)), x: rows.map((row) => row.mean),
    error_x: {type: "data", symmetric: false, array: rows.map((row) => row.most - row.mean),
      arrayminus: rows.map((row) => row.mean - row.least), color: t.soft, thickness: 1.5, width: 4},
    marker: {color: t.load, size: 10},
    customdata: rows.map((row) =>
      [fixed(3)(row.mean), fixed(3)(row.least), fixed(3)(row.most), row.count, plain(row.label)]),
    hovertemplate: "<b>%{customdata[4]}</b><br>mean %{customdata[0]}<br>least %{customdata[1]}, greatest %{customdata[2]}" +
      "<br>%{customdata[3]} problems<extra></extra>",
  };
  draw("machines", rows.length ? [trace] : [], {
    height: 110 + 26 * rows.length,
    xaxis: axis(t, `time over that on ${plain(DATA.machines[0].label)} (1: the same)`),
    yaxis: axis(t, told, {autorange: "reversed", type: "category", dtick: 1}),
    shapes: [{type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: {color: t.soft, dash: "dot"}}],
  });
}

// For each tile and stages the slow-down (geometric mean over problems) and its best kernel.
function tileCells() {
  const columns = STAGES.length;
  const at = K.stages.map((stages, c) => TILE[c] * columns + STAGES.indexOf(stages));
  const kernels = kernelsShown();
  const logs = new Float64Array(TILES.length * columns);
  const counts = new Int32Array(logs.length);
  const wins = range(logs.length).map(() => new Map());
  const least = new Float64Array(logs.length);
  const holder = new Int32Array(logs.length);
  for (const p of shown) {
    least.fill(Infinity);
    for (const c of kernels) {
      const cell = cellOf(p, c);
      if (isThere(cell) && SLOWDOWN[cell] < least[at[c]]) {
        least[at[c]] = SLOWDOWN[cell];
        holder[at[c]] = c;
      }
    }
    least.forEach((step, i) => {
      if (step === Infinity) return;
      logs[i] += step * DATA.step;
      counts[i] += 1;
      wins[i].set(holder[i], (wins[i].get(holder[i]) ?? 0) + 1);
    });
  }
  return {logs, counts, wins};
}

function tiles() {
  const t = theme();
  const {logs, counts, wins} = tileCells();
  const columns = STAGES.length;
  const mean = (i) => counts[i] ? Math.exp(logs[i] / counts[i]) : null;
  const leastOf = (tile) => Math.min(...range(columns).map((s) => mean(tile * columns + s) ?? Infinity));
  let rows = TILE_ORDER.filter((tile) => leastOf(tile) < Infinity);
  const hidden = Math.max(rows.length - MOST_TILES, 0);
  if (hidden) {
    const limit = rows.map(leastOf).sort((a, b) => a - b)[MOST_TILES - 1];
    rows = rows.filter((tile) => leastOf(tile) <= limit);
  }
  const values = rows.map((tile) => range(columns).map((s) => mean(tile * columns + s)));
  const known = values.flat().filter((value) => value !== null).sort((a, b) => a - b);
  const single = shown.length === 1;
  const hover = rows.map((tile) => range(columns).map((s) => {
    const i = tile * columns + s;
    if (!counts[i]) return "no legal configuration";
    const [c, count] = [...wins[i]].sort((a, b) => b[1] - a[1])[0];
    const lines = [`slow-down <b>${fixed(3)(mean(i))}</b>`];
    if (single) {
      const cell = cellOf(shown[0], c);
      lines.push(`${number(bestOf(shown[0]) * slowdownOf(cell))} µs`, DATA.schedules[K.schedule[c]],
        settingText(cell), `limited by ${DATA.limiters[limiterOf(cell)]}`);
    } else {
      lines.push(`${counts[i].toLocaleString("en")} problems`,
        `${DATA.schedules[K.schedule[c]]} is fastest in ${count.toLocaleString("en")}`);
    }
    return lines.filter((line) => line).join("<br>");
  }));
  const most = Math.min(Math.max(quantile(known, 0.9), 1.1), 3);
  const trace = {
    type: "heatmap", x: STAGES.map(String), y: rows.map((tile) => TILES[tile]), z: values, customdata: hover,
    hovertemplate: "<b>%{y}, %{x} stages</b><br>%{customdata}<extra></extra>", hoverongaps: false,
    zmin: 1, zmax: most, colorscale: "Viridis", reversescale: true,
    xgap: 2, ygap: 2,
    colorbar: {title: {text: "slow-down", side: "right"}, thickness: 12, outlinewidth: 0},
  };
  const cells = values.flatMap((row, r) => row.map((value, s) => ({value, y: TILES[rows[r]], x: String(STAGES[s])})))
    .filter(({value}) => value !== null);
  const isRoomy = $("#tiles").clientWidth / columns > 75;
  const texts = {
    type: "scatter", mode: "text", x: cells.map(({x}) => x), y: cells.map(({y}) => y), hoverinfo: "skip",
    text: cells.map(({value}) => value === known[0] ? `<b>${fixed(2)(value)}</b>` : fixed(2)(value)),
    textfont: {size: 11, color: cells.map(({value}) => (value - 1) / (most - 1) > 0.5 ? "#ffffff" : "#000000")},
  };
  draw("tiles", known.length ? [trace, ...(isRoomy ? [texts] : [])] : [], {
    showlegend: false,
    height: 110 + Math.min(24, (isPrinting() ? 800 : Infinity) / rows.length) * rows.length,
    xaxis: axis(t, "stages", {type: "category", range: [-0.5, columns - 0.5], showgrid: false, ticks: ""}),
    yaxis: axis(t, hidden ? `tile (best ${rows.length} of ${rows.length + hidden})` : "tile",
      {type: "category", range: [rows.length - 0.5, -0.5], showgrid: false, ticks: ""}),
  }, "No legal configuration.");
}

