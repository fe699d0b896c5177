// A sweep that kept quantiles: how the times of each problem's kernels are spread.
const P = DATA.problems;
const PROBLEM = unpack(DATA.problem);
const MACHINE = unpack(DATA.machine);
const F = Object.fromEntries(Object.entries(DATA.figures).map(([name, values]) => [name, unpack(values)]));
const TITLES = {
  time_us_min: "fastest", time_us_p05: "5 %", time_us_p25: "25 %", time_us_p50: "median", time_us_p75: "75 %",
  time_us_p95: "95 %", time_us_max: "slowest",
};
const MOST = 30;
const several = DATA.machines.length > 1;
const labelOf = (i) => P.label[PROBLEM[i]] + (several ? ` on ${DATA.machines[MACHINE[i]].short}` : "");
const over = (name) => (i) => F[name][i] / F.time_us_min[i];
let shown = range(PROBLEM.length);

function spread() {
  const t = theme();
  const rows = [...shown].sort((a, b) => over("time_us_p50")(b) - over("time_us_p50")(a)).slice(0, MOST);
  const of = (name) => rows.map(over(name));
  const most = Math.max(...of("time_us_p95"), 1.05);
  draw("spread", rows.length ? [{
    type: "box", orientation: "h", y: rows.map((i) => plain(labelOf(i))), q1: of("time_us_p25"), median: of("time_us_p50"),
    q3: of("time_us_p75"), lowerfence: of("time_us_p05"), upperfence: of("time_us_p95"),
    marker: {color: t.load}, line: {width: 1.5},
  }] : [], {
    height: 110 + 24 * rows.length,
    xaxis: axis(t, "time over the problem's fastest", logarithmic(0.97, most * 1.05)),
    yaxis: axis(t, "", {autorange: "reversed", type: "category", dtick: 1}),
  });
}

function problems() {
  const named = P.shown.map((name) => ({
    title: name, get: (i) => P[name][PROBLEM[i]], left: typeof P[name][0] === "string",
  }));
  const machine = several ? [{title: "machine", get: (i) => DATA.machines[MACHINE[i]].label, left: true}] : [];
  const times = Object.entries(TITLES).map(([name, title]) => ({title, get: (i) => F[name][i], format: number}));
  table("problems", [
    ...named, ...machine, {title: "kernels", get: (i) => F.rows[i], format: number}, ...times,
    {title: "median over fastest", get: over("time_us_p50"), format: fixed(3)},
  ], shown);
}

function matches(i, words) {
  const label = labelOf(i).toLowerCase();
  return words.every((word) => {
    const [, name, value] = word.match(/^([a-z_0-9]+)=(.+)$/) ?? [];
    return name in P && name !== "label" ? String(P[name][PROBLEM[i]]).toLowerCase() === value : label.includes(word);
  });
}

function update() {
  $("#count").textContent = `${shown.length.toLocaleString("en")} of ${PROBLEM.length.toLocaleString("en")} rows`;
  redraw();
}

const input = make("input", {id: "words", type: "search", placeholder: "words of its name, or m=16"});
let waiting = 0;
input.oninput = () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    shown = range(PROBLEM.length).filter((i) => matches(i, words));
    update();
  }, 150);
};
$("#filters").onsubmit = (event) => event.preventDefault();
$("#filters").append(make("label", {}, "Problems", input), make("span", {id: "count", data: {role: "status"}}));
$("#subtitle").textContent = "How the predicted times of a sweep's configurations are spread.";
facts([
  ["legal configurations", DATA.legal.toLocaleString("en"), `of ${DATA.candidates.toLocaleString("en")} candidates`],
  ["problems", P.label.length.toLocaleString("en")],
  several ? ["machines", DATA.machines.length.toLocaleString("en")] : ["machine", DATA.machines[0].label],
]);
const dropped = Object.entries(DATA.left_out).map(([why, count]) => `${count.toLocaleString("en")} ${why}`);
notes([...DATA.notes, ...(dropped.length ? [`Left out: ${dropped.join(", ")}.`] : [])]);
const redraw = start({spread, problems});
update();
