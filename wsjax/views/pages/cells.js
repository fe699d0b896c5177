// The page of a sweep. A cell is the fastest row of a kernel (tile, stages, schedule), a problem
// and a machine: its time over the problem's best, and its limiter and settings.
const NEAR = 1.02;
const MANY_POINTS = 2500;
const MOST_TILES = 48;
const MOST_MACHINES = 24;
const MOST_WAVES = 8;
const MOST_STEPS = 800;
const BINS = {wave: 16, rate: 40};

const {problems: P, kernels: K} = DATA;
const SLOWDOWN = unpack(DATA.slowdown);
const MARK = unpack(DATA.mark);
const BEST = unpack(DATA.best_us);
const PROBLEMS = P.m.length;
const KERNELS = K.stages.length;
const SIZE = range(PROBLEMS).map((p) => P.m[p] * P.n[p] * P.k[p] * P.batch[p]);
const TILES = distinct(K.block_m.map((_, c) => tileName(c)));
const TILE = K.block_m.map((_, c) => TILES.indexOf(tileName(c)));
const BLOCKS = TILES.map((_, i) => TILE.indexOf(i)).map((c) => [K.block_m[c], K.block_n[c], K.block_k[c]]);
BLOCKS.forEach((blocks, i) => { blocks.index = i; });
const TILE_ORDER = [...BLOCKS].sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]).map((b) => b.index);
const STAGES = distinct(K.stages).sort((a, b) => a - b);
const USED = distinct(K.schedule).sort();
const LIMITS = DATA.limiters.length;

const chosen = {machine: 0, schedule: -1, words: ""};
let shown = range(PROBLEMS);

function tileName(c) {
  return `${K.block_m[c]}×${K.block_n[c]}×${K.block_k[c]}`;
}

const cellOf = (p, c, machine = chosen.machine) => (machine * PROBLEMS + p) * KERNELS + c;
const bestOf = (p, machine = chosen.machine) => BEST[machine * PROBLEMS + p];
const isThere = (cell) => SLOWDOWN[cell] !== DATA.absent;
const slowdownOf = (cell) => Math.exp(SLOWDOWN[cell] * DATA.step);
const limiterOf = (cell) => MARK[cell] % LIMITS;
const settingOf = (cell) => DATA.settings[Math.floor(MARK[cell] / LIMITS)];
const rate = (p, time) => (2e-6 * SIZE[p]) / time;
const kernelName = (c) => `${tileName(c)}, ${K.stages[c]} stages, ${DATA.schedules[K.schedule[c]]}`;
const settingText = (cell) => DATA.setting_names.map((name, i) => `${name}=${settingOf(cell)[i]}`).join(" ");
const scheduled = (c) => chosen.schedule < 0 || K.schedule[c] === chosen.schedule;
const kernelsShown = () => range(KERNELS).filter(scheduled);

function intensity(p) {
  const bytes = (P.m[p] * P.k[p] + P.k[p] * P.n[p]) * P.bytes_in[p] + P.m[p] * P.n[p] * P.bytes_out[p];
  return (2 * P.m[p] * P.n[p] * P.k[p]) / bytes;
}

// TFLOP/s that neither the matrix units nor DRAM let a problem exceed; null where none is known.
function roof(p) {
  const machine = DATA.machines[chosen.machine];
  const known = [machine.peak[P.dtype_in[p]], machine.dram && (machine.dram * intensity(p)) / 1e6];
  const roofs = known.filter((value) => value);
  return roofs.length ? Math.min(...roofs) : null;
}

// The fastest of some kernels for a problem: {p, c, cell, time, near}; null if none is legal.
function fastest(p, kernels, machine = chosen.machine) {
  let top = -1;
  for (const c of kernels) {
    const cell = cellOf(p, c, machine);
    if (isThere(cell) && (top < 0 || SLOWDOWN[cell] < SLOWDOWN[cellOf(p, top, machine)])) top = c;
  }
  if (top < 0) return null;
  const cell = cellOf(p, top, machine);
  const limit = SLOWDOWN[cell] + Math.log(NEAR) / DATA.step;
  const near = kernels.filter((c) => SLOWDOWN[cellOf(p, c, machine)] <= limit).length;
  return {p, c: top, cell, near, time: bestOf(p, machine) * slowdownOf(cell)};
}

const leaders = () => {
  const kernels = kernelsShown();
  return shown.map((p) => fastest(p, kernels)).filter((found) => found);
};

