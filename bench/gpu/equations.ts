/**
 * Times data-parallel ALS on a GPU: one block of a side whose fixed side is in parts, generated with the
 * shape of Hugewiki's items and an eleventh of its users. Adding the block to normal equations in memory, and
 * solving rows from them, are compared with `update` of the same block.
 *
 *     node bench/gpu/equations.ts '{"rank":100}' '[{"name":"update"},{"name":"tensor"},{"name":"tensor","steps":0}]' [times = 5]
 */
import { CounterRandom } from '../../engine/random.ts';
import { type DeviceBlock, type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import { addEquations } from '../../gpu/equations/add-equations.ts';
import { solveRows } from '../../gpu/equations/solve-equations.ts';
import { addHalf } from '../../gpu/copies/to-half.ts';
import { updateRows } from '../../gpu/update/half-iteration.ts';
import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { updateVariants } from '../../gpu/update/choice/variants.ts';
import { openGpu } from '../../gpu/webgpu/open-gpu.ts';
import type { KernelTimes } from '../../gpu/webgpu/pass.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';

interface Setting {
  /** Name of a variant; `update`: the task `update` with its best variant by rule. */
  readonly name: string;
  readonly change?: Partial<UpdateVariant>;
  /** CG steps; 0 for Cholesky. */
  readonly steps?: number;
}

const [given = '{}', settings = '[{"name":"update"},{"name":"tensor"}]', count = '5'] = process.argv.slice(2);
const {
  rows = 39_780,
  columns = 4_552_964,
  ratings = 279_074_362,
  rank = 100,
} = JSON.parse(given) as Record<string, number>;
const lambda = 0.05;

const gpu = await openGpu();
const block = await drawBlock();
const stride = strideOf(rank);
const fixed = await matrix(columns, rank, true);
const [previous, factors] = [await matrix(rows, rank, false), await matrix(rows, rank, false)];
const equations = await matrix(rows, equationColumns(rank, false), false);
console.log(
  `${gpu.info.name}: ${rows} rows, ${columns} columns, ${block.ratings} ratings, rank ${rank}; equations of ${(equations.rows * equations.stride * 4) / 2 ** 20} MiB`,
);
let reference: Float32Array | undefined;
for (const setting of JSON.parse(settings) as Setting[]) await bench(setting);
process.exit(0);

async function bench({ name, change, steps = 6 }: Setting): Promise<void> {
  const solver = steps === 0 ? ('cholesky' as const) : { steps };
  const variants = updateVariants(gpu.info, { rank, solver: steps === 0 ? 'cholesky' : 'cg', biases: false });
  const found = name === 'update' ? variants[0] : variants.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there are ${variants.map((one) => one.name).join(', ')}`);
  const variant = { ...found, ...change };
  const range = { variant, from: 0, to: rows, rank };
  const samples: KernelTimes[] = [];
  for (let time = 0; time <= Number(count); time++) {
    // The first call also makes the lists of rows.
    const clear = gpu.device.createCommandEncoder();
    clear.clearBuffer(equations.values);
    gpu.device.queue.submit([clear.finish()]);
    const times: Record<string, number> = {};
    const begin = performance.now();
    if (name === 'update')
      Object.assign(
        times,
        (
          await updateRows(
            gpu,
            { block, fixed, previous, factors },
            { ...range, lambda, mean: 0, solver, scale: 1 },
            { timed: true },
          )
        ).times,
      );
    else {
      Object.assign(
        times,
        await addEquations(
          gpu,
          { block, fixed, equations },
          { ...range, rowStart: 0, mean: 0, scale: 1 },
          { timed: true },
        ),
      );
      Object.assign(
        times,
        (
          await solveRows(
            gpu,
            { equations, previous, factors },
            { ...range, rowStart: 0, lambda, solver },
            { timed: true },
          )
        ).times,
      );
    }
    times.wall = performance.now() - begin;
    if (time > 0) samples.push(times);
  }
  const median = (kernel: string) =>
    samples.map((times) => times[kernel] ?? 0).sort((a, b) => a - b)[samples.length >> 1];
  const kernels = Object.keys(samples[0]).map((kernel) => `${kernel} ${median(kernel).toFixed(2)}`);
  console.log(
    `${name === 'update' ? `update by ${found.name}` : `equations by ${name}`}, ${steps === 0 ? 'cholesky' : `cg ${steps}`} ${JSON.stringify(change ?? {})}: ${kernels.join(', ')} ms; ${await distance()}`,
  );
}

/** The largest difference of a row from the first setting's factors, relative to its norm. */
async function distance(): Promise<string> {
  const values = new Float32Array(rows * stride);
  await gpu.download(factors.values, values);
  if (reference === undefined) reference = values;
  let worst = 0;
  for (let row = 0; row < rows; row++) {
    let [difference, norm] = [0, 0];
    for (let k = row * stride; k < (row + 1) * stride; k++)
      [difference, norm] = [difference + (values[k] - reference[k]) ** 2, norm + reference[k] ** 2];
    worst = Math.max(worst, Math.sqrt(difference / (norm || 1)));
  }
  return `largest distance of a row from the first ${worst.toExponential(1)}`;
}

async function matrix(count: number, width: number, random: boolean): Promise<DeviceMatrix> {
  const own = strideOf(width);
  const made: DeviceMatrix = {
    rows: count,
    columns: width,
    stride: own,
    values: await gpu.buffer(count * own * 4, 'matrix'),
    half: width === rank ? await gpu.buffer((count + 1) * own * 2, 'half') : undefined,
  };
  if (!random) return made;
  // One million random rows, repeated.
  const numbers = new CounterRandom(1);
  const drawn = new Float32Array(Math.min(count, 1 << 20) * own);
  for (let at = 0; at < drawn.length; at++)
    if (at % own < width) drawn[at] = (numbers.uniform(at) - 0.5) / Math.sqrt(width);
  for (let row = 0; row < count; row += 1 << 20)
    await gpu.upload(made.values, drawn.subarray(0, Math.min(1 << 20, count - row) * own), row * own * 4);
  const pass = gpu.pass('half mirror');
  await addHalf(gpu, pass, made);
  await pass.submit();
  return made;
}

/**
 * Rows by popularity, (r + c) to the power -1.302 with the first row's share from Hugewiki; columns ascend at
 * random distances.
 */
async function drawBlock(): Promise<DeviceBlock> {
  const weights = (c: number) => Float64Array.from({ length: rows }, (_, row) => (row + c) ** -1.302);
  let [low, high] = [1, 1e6];
  while (high - low > 1) {
    const middle = (low + high) / 2;
    const shares = weights(middle);
    if (shares[0] / shares.reduce((sum, share) => sum + share, 0) > 0.000_521) low = middle;
    else high = middle;
  }
  const shares = weights(low);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const offsets = new Int32Array(rows + 1);
  shares.forEach(
    (share, row) =>
      (offsets[row + 1] = offsets[row] + Math.min(columns, Math.round((ratings * share) / total))),
  );
  const [indices, values] = [new Uint32Array(offsets[rows]), new Float32Array(offsets[rows])];
  let state = 1;
  for (let row = 0; row < rows; row++) {
    const step = columns / (offsets[row + 1] - offsets[row]);
    let place = 0;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      indices[k] = place + (state / 2 ** 32) * step;
      values[k] = 1 + (state >>> 30);
      place += step;
    }
  }
  const upload = (numbers: Uint32Array | Float32Array | Int32Array, label: string) =>
    gpu.bufferOf(numbers, label);
  return {
    rows,
    ratings: offsets[rows],
    offsets,
    columns: indices,
    rowPointers: await upload(offsets, 'offsets'),
    indices: await upload(indices, 'indices'),
    values: await upload(values, 'values'),
    prepared: new Map(),
  };
}
