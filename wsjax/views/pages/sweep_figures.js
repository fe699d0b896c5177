// The figures of a sweep: roofline, what limits, waves.

// A dtype's roof from one intensity to another: its corners, and labels; null if none is known.
function roofOf(dtype, low, high) {
  const {peak, dram} = DATA.machines[chosen.machine];
  const top = peak[dtype] ?? Infinity;
  const slope = dram ? dram / 1e6 : Infinity;
  const knee = top / slope;
  const points = [low, ...(knee > low && knee < high ? [knee] : []), high]
    .map((x) => [x, Math.min(top, slope * x)]).filter(([, y]) => Number.isFinite(y));
  const labels = [];
  if (top < slope * high) labels.push({x: high, y: top, side: "right", text: `${dtype} ${number(top)} TFLOP/s`});
  const middle = Math.sqrt(low * Math.min(knee, high));
  if (knee > low) labels.push({x: middle, y: slope * middle, side: "right", text: `DRAM ${number(slope, 3)} TB/s `});
  return points.length ? {points, labels} : null;
}

function roofline() {
  const t = theme();
  const found = leaders();
  const kernels = kernelsShown();
  const median = found.map(({p}) => {
    const steps = kernels.map((c) => SLOWDOWN[cellOf(p, c)]).filter((step) => step !== DATA.absent).sort((a, b) => a - b);
    return rate(p, bestOf(p) * Math.exp(quantile(steps, 0.5) * DATA.step));
  });
  const traces = [{
    type: "scatter", mode: "markers", name: "median kernel", x: found.map(({p}) => intensity(p)), y: median,
    marker: {color: t.soft, size: 5, opacity: 0.55, symbol: "line-ew-open"},
    customdata: found.map(({p}) => plain(P.label[p])),
    hovertemplate: "%{customdata}<br>median kernel: %{y:.4~g} TFLOP/s<extra></extra>",
  }];
  DATA.limiters.forEach((limiter, code) => {
    const own = found.filter(({cell}) => limiterOf(cell) === code);
    if (!own.length) return;
    traces.push({
      type: "scatter", mode: "markers", name: `fastest, limited by ${limiter}`,
      x: own.map(({p}) => intensity(p)), y: own.map(({p, time}) => rate(p, time)),
      marker: {color: t[limiter], size: 7, symbol: ["circle", "square", "diamond"][code], line: {color: t.paper, width: 0.5}},
      customdata: own.map(({p, c, cell, time}) => [
        plain(P.label[p]), kernelName(c), settingText(cell), number(time), number(rate(p, time)),
        roof(p) ? `${Math.round((100 * rate(p, time)) / roof(p))} % of the roof` : "", p,
      ]),
      hovertemplate: "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]} µs, " +
        "%{customdata[4]} TFLOP/s<br>%{customdata[5]}<extra></extra>",
    });
  });
  const others = range(PROBLEMS).filter((p) => !shown.includes(p)).map((p) => fastest(p, range(KERNELS))).filter((one) => one);
  if (others.length) {
    traces.unshift({
      type: "scatter", mode: "markers", name: "other problems", hoverinfo: "skip",
      x: others.map(({p}) => intensity(p)), y: others.map(({p, time}) => rate(p, time)), marker: {color: t.soft, size: 5, opacity: 0.35},
    });
  }
  const xs = [...found, ...others].map(({p}) => intensity(p));
  const [low, high] = [Math.min(...xs) / 1.5, Math.max(...xs) * 1.5];
  const roofs = distinct(found.map(({p}) => P.dtype_in[p])).map((dtype) => roofOf(dtype, low, high)).filter((one) => one);
  roofs.forEach(({points}) => traces.push({
    type: "scatter", mode: "lines", showlegend: false, x: points.map(([x]) => x), y: points.map(([, y]) => y),
    line: {color: t.ink, width: 1.5}, hoverinfo: "skip",
  }));
  const rates = traces.flatMap(({y}) => y).filter((value) => value > 0 && Number.isFinite(value));
  const place = draw("roofline", found.length ? traces : [], {
    height: 460, annotations: roofs.flatMap(({labels}) => labels.map(({x, y, text, side}) => ({
      x: Math.log10(x), y: Math.log10(y), text, showarrow: false, xanchor: side, yanchor: "bottom", font: {color: t.ink, size: 11},
    }))),
    xaxis: axis(t, "arithmetic intensity, flop/B", logarithmic(low, high)),
    yaxis: axis(t, "rate, TFLOP/s", logarithmic(Math.min(...rates) / 1.5, Math.max(...rates) * 1.7)),
  });
  if (!found.length) return;
  place.removeAllListeners("plotly_click");
  place.on("plotly_click", ({points: [point]}) => {
    const p = point.customdata?.[6];
    if (typeof p === "number") select(P.label[p]);
  });
}

// --- what limits ---

// Sizes as they are, or, where there are many, by powers of two.
function sizeWords(values) {
  const all = distinct(values).sort((a, b) => a - b);
  if (all.length <= 16) return {words: all.map(String), code: values.map((value) => all.indexOf(value))};
  const power = (value) => Math.floor(Math.log2(value));
  const powers = distinct(all.map(power));
  const words = powers.map((e) => `${(2 ** e).toLocaleString("en")} to ${(2 ** (e + 1) - 1).toLocaleString("en")}`);
  return {words, code: values.map((value) => powers.indexOf(power(value)))};
}

const BY = {
  stages: {words: STAGES.map(String), of: (p, c) => STAGES.indexOf(K.stages[c])},
  tile: {words: TILE_ORDER.map((tile) => TILES[tile]), of: (p, c) => TILE_ORDER.indexOf(TILE[c])},
  schedule: {words: USED.map((code) => DATA.schedules[code]), of: (p, c) => USED.indexOf(K.schedule[c])},
};
for (const name of ["m", "n", "k"]) {
  const {words, code} = sizeWords(P[name]);
  BY[name] = {words, of: (p) => code[p]};
}
for (const name of Object.keys(BY)) {
  if (BY[name].words.length < 2) delete BY[name];
}
chosen.by = Object.keys(BY).includes("m") ? "m" : Object.keys(BY)[0];

function limits() {
  const t = theme();
  const one = shown.length === 1 && ["m", "n", "k"].includes(chosen.by);
  const by = one ? Object.keys(BY)[0] : chosen.by;
  const {words, of} = BY[by] ?? {words: ["all"], of: () => 0};
  if ($("#limits select")) $("#limits select").value = by;
  const kernels = kernelsShown();
  const groups = [["all kernels", new Int32Array(words.length * LIMITS)], ["the fastest of each problem", new Int32Array(words.length * LIMITS)]];
  for (const p of shown) {
    for (const c of kernels) {
      const cell = cellOf(p, c);
      if (isThere(cell)) groups[0][1][of(p, c) * LIMITS + limiterOf(cell)] += 1;
    }
  }
  for (const {p, c, cell} of leaders()) groups[1][1][of(p, c) * LIMITS + limiterOf(cell)] += 1;
  const total = (counts, i) => range(LIMITS).reduce((sum, code) => sum + counts[i * LIMITS + code], 0);
  const rows = range(words.length).filter((i) => total(groups[0][1], i));
  const traces = groups.flatMap(([title, counts], g) => DATA.limiters.map((limiter, code) => ({
    type: "bar", orientation: "h", name: limiter, legendgroup: limiter, showlegend: g === 0,
    marker: {color: t[limiter], line: {color: t.paper, width: 1}}, xaxis: g ? "x2" : "x",
    y: rows.map((i) => words[i]), x: rows.map((i) => (100 * counts[i * LIMITS + code]) / Math.max(total(counts, i), 1)),
    customdata: rows.map((i) => [counts[i * LIMITS + code].toLocaleString("en"), total(counts, i).toLocaleString("en")]),
    hovertemplate: `<b>${by ?? ""} %{y}</b>, ${title}<br>${limiter}: %{x:.1f} % (%{customdata[0]} of %{customdata[1]})<extra></extra>`,
  })));
  const heading = (text, x) => ({text, x, xref: "paper", y: 1, yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: {color: t.soft}});
  draw("limits", rows.length ? traces : [], {
    barmode: "stack", height: 130 + Math.max(22 * rows.length, 60), margin: {l: 60, r: 16, t: 50, b: 48}, bargap: 0.25,
    legend: {orientation: "h", y: 1, yref: "container", yanchor: "top", x: 0, traceorder: "normal"},
    annotations: [heading("all kernels", 0), heading("the fastest of each problem", 0.53)],
    xaxis: axis(t, "share, %", {domain: [0, 0.47], range: [0, 100]}),
    xaxis2: axis(t, "share, %", {domain: [0.53, 1], range: [0, 100]}),
    yaxis: axis(t, by ?? "", {type: "category", autorange: "reversed"}),
  });
}

// --- waves ---

// The tile that is fastest where most of the time goes; null: each.
chosen.tile = (() => {
  const weights = TILES.map(() => 0);
  leaders().forEach(({c, time}) => { weights[TILE[c]] += time; });
  return weights.indexOf(Math.max(...weights));
})();

// Tiles an SM and TFLOP/s of the fastest stages and settings of a tile, for each problem.
function wavePoints() {
  const {sms} = DATA.machines[chosen.machine];
  const kernels = kernelsShown();
  const picked = chosen.tile === null ? TILE_ORDER : [chosen.tile];
  const own = picked.map((tile) => kernels.filter((c) => TILE[c] === tile));
  const points = [];
  for (const p of shown) {
    picked.forEach((tile, i) => {
      const found = fastest(p, own[i]);
      if (!found) return;
      const [m, n] = BLOCKS[tile];
      const count = Math.ceil(P.m[p] / m) * Math.ceil(P.n[p] / n) * P.batch[p];
      points.push({...found, tile, count, x: count / sms, y: rate(p, found.time)});
    });
  }
  return points;
}

// How many points are in each bin of tiles an SM and of rate.
function waveDensity(points, end, top) {
  const wide = Math.max(1 / BINS.wave, end / (MOST_WAVES * BINS.wave));
  const x = range(Math.ceil(end / wide)).map((i) => (i + 0.5) * wide);
  const y = range(BINS.rate).map((i) => ((i + 0.5) / BINS.rate) * top);
  const z = y.map(() => x.map(() => null));
  points.forEach((point) => {
    const column = Math.min(Math.ceil(point.x / wide), x.length) - 1;
    const row = Math.min(Math.floor((point.y / top) * BINS.rate), BINS.rate - 1);
    z[row][column] = (z[row][column] ?? 0) + 1;
  });
  const logs = z.map((row) => row.map((count) => count && Math.log10(count)));
  return {x, y, z: logs, customdata: z, zmin: 0, most: Math.max(...z.flat())};
}

function waves() {
  const t = theme();
  const all = wavePoints().filter(({y}) => Number.isFinite(y));
  const few = all.filter(({x}) => x <= MOST_WAVES);
  const points = 3 * few.length > all.length ? few : all;
  const top = Math.max(...points.map(({y}) => y));
  const end = Math.max(...points.map(({x}) => x), 1);
  const traces = [];
  if (points.length > MANY_POINTS) {
    const {most, ...density} = waveDensity(points, end, top);
    traces.push({
      type: "heatmap", ...density, colorscale: [[0, t.few], [1, t.many]], hoverongaps: false,
      colorbar: {title: {text: "points", side: "right"}, thickness: 12, outlinewidth: 0, ...logTicks(most)},
      hovertemplate: "%{customdata} problems and tiles<br>%{x:.2f} tiles an SM, %{y:.0f} TFLOP/s<extra></extra>",
    });
  } else {
    const depths = distinct(points.map(({p}) => P.k[p])).sort((a, b) => a - b);
    const told = depths.length > 1 && depths.length <= 4;
    const colors = [t.load, t.latency, t.compute, t.mark];
    (told ? depths : [null]).forEach((k, i) => {
      const own = points.filter(({p}) => k === null || P.k[p] === k);
      traces.push({
        type: "scatter", mode: "markers", name: told ? `k ${k}` : "problem and tile", x: own.map(({x}) => x), y: own.map(({y}) => y),
        marker: {color: colors[i], size: 5, symbol: ["circle", "square", "diamond", "cross"][i]},
        customdata: own.map(({p, c, cell, count, time}) => [plain(P.label[p]), kernelName(c), settingText(cell), count.toLocaleString("en"), number(time)]),
        hovertemplate: "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]} tiles, %{x:.3f} an SM<br>" +
          "%{customdata[4]} µs, %{y:.4~g} TFLOP/s<extra></extra>",
      });
    });
  }
  const ideal = range(MOST_STEPS).map((i) => ((i + 1) / MOST_STEPS) * end);
  traces.push({
    type: "scatter", mode: "lines", name: "highest rate × share of the waves that is filled",
    x: ideal, y: ideal.map((x) => (top * x) / Math.ceil(x - 1e-9)), line: {color: t.soft, width: 1.2, dash: "dot"}, hoverinfo: "skip",
  });
  draw("waves", points.length ? traces : [], {
    height: 420, showlegend: true,
    xaxis: axis(t, "output tiles an SM", {range: [0, end * 1.01], dtick: end > MOST_WAVES ? undefined : 1}),
    yaxis: axis(t, "rate, TFLOP/s", {rangemode: "tozero"}),
  });
}

