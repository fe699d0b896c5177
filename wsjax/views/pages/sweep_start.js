// The filters and the head of a sweep's page, and its start.

// Words of which each must be in the label, or be a column's value, as in "qkv m=16".
function matches(p, words) {
  const label = P.label[p].toLowerCase();
  return words.every((word) => {
    const [, name, value] = word.match(/^([a-z_0-9]+)=(.+)$/) ?? [];
    return name in P && name !== "label" ? String(P[name][p]).toLowerCase() === value : label.includes(word);
  });
}

function select(text) {
  chosen.words = text;
  const exact = P.label.indexOf(text);
  const words = text.toLowerCase().split(/\s+/).filter((word) => word);
  shown = exact >= 0 ? [exact] : range(PROBLEMS).filter((p) => matches(p, words));
  const input = $("#words");
  if (input && input.value !== text) input.value = text;
  update();
}

function filters() {
  const form = $("#filters");
  form.onsubmit = (event) => event.preventDefault();
  if (DATA.machines.length > 1) {
    choice(form, "Machine", DATA.machines.map(({label}, i) => [i, label]), 0, (value) => {
      chosen.machine = Number(value);
      update();
    });
  }
  if (PROBLEMS > 1) {
    const input = make("input", {id: "words", type: "search", placeholder: "words of its name, or m=16",
      data: {list: "labels"}});
    let waiting = 0;
    input.oninput = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => select(input.value.trim()), 150);
    };
    form.append(make("label", {}, "Problems", input),
      make("datalist", {id: "labels"}, ...P.label.map((label) => make("option", {value: label}))));
  }
  if (USED.length > 1) {
    const options = [[-1, "any"], ...USED.map((code) => [code, DATA.schedules[code]])];
    choice(form, "Schedule", options, -1, (value) => {
      chosen.schedule = Number(value);
      update();
    });
  }
  form.append(make("span", {id: "count", data: {role: "status"}}));
}

function countText() {
  const what = shown.length === 1 ? P.label[shown[0]] : `${shown.length.toLocaleString("en")} problems`;
  const schedule = chosen.schedule < 0 ? "" : `, ${DATA.schedules[chosen.schedule]}`;
  return `${what} on ${DATA.machines[chosen.machine].label}${schedule}`;
}

const SECTIONS = {best, machines, tiles, roofline, limits, waves};

function update() {
  $("#count").textContent = countText();
  redraw();
}

function header() {
  const tops = DATA.machines.flatMap((_, i) => range(PROBLEMS).map((p) => fastest(p, range(KERNELS), i)))
    .filter((found) => found && Number.isFinite(rate(found.p, found.time)));
  const top = tops.reduce((a, b) => (rate(b.p, b.time) > rate(a.p, a.time) ? b : a), tops[0]);
  const dropped = Object.entries(DATA.left_out).map(([why, count]) => `${count.toLocaleString("en")} ${why}`);
  facts([
    ["configurations", DATA.rows.toLocaleString("en"), `of ${DATA.candidates.toLocaleString("en")} candidates`],
    ["problems", DATA.all_problems.toLocaleString("en")],
    DATA.all_machines === 1 ? ["machine", DATA.machines[0].label] : ["machines", DATA.all_machines.toLocaleString("en")],
    ...(top ? [["highest rate", `${number(rate(top.p, top.time))} TFLOP/s`, P.label[top.p]]] : []),
  ]);
  const lines = [...DATA.notes];
  if (dropped.length) lines.push(`Left out: ${dropped.join(", ")}.`);
  if (DATA.extrapolated) {
    lines.push(`${DATA.extrapolated.toLocaleString("en")} rows are extrapolated ${DATA.extrapolated_because.join("; ")}.`);
  }
  if (PROBLEMS < DATA.all_problems) {
    lines.push(`The page holds ${PROBLEMS.toLocaleString("en")} of the problems, drawn evenly.`);
  }
  if (DATA.machines.length < DATA.all_machines) {
    lines.push(`The page holds ${DATA.machines.length} of the machines: the first and the fastest.`);
  }
  notes(lines);
  $("#subtitle").textContent = "Predicted times of a sweep's configurations.";
}

header();
filters();
if (Object.keys(BY).length > 1) {
  choice($("#limits .controls"), "by", Object.keys(BY).map((name) => [name, name]), chosen.by, (value) => {
    chosen.by = value;
    limits();
  });
}
if (TILES.length > 1) {
  const options = [["", "each"], ...TILE_ORDER.map((tile) => [tile, TILES[tile]])];
  choice($("#waves .controls"), "tile", options, chosen.tile, (value) => {
    chosen.tile = value === "" ? null : Number(value);
    waves();
  });
}
$("#count").textContent = countText();
const redraw = start(SECTIONS);
