import { chooseNormalEquations, normalEquationsKernel, type NormalEquationsParams, normalEquationsWorkgroups } from '../descriptors/normal-equations.ts';
import type { Gpu } from '../gpu.ts';
import { paddedRank, slotElements } from '../update/layout.ts';
import { EntryList } from '../update/work.ts';
import type { KernelCheck } from './check.ts';
import { eachSlotElement, partEquations, ratedRows, readSlot } from './rated-rows.ts';

/** Of the largest element of A and of b: the rounding of some thousand sums. */
const LIMIT = 1e-5;

interface Case {
  readonly rank: number;
  readonly longest: number;
  readonly changes?: Partial<NormalEquationsParams>;
}

const mainRanks: readonly Case[] = [1, 7, 10, 32, 63, 64, 100, 128, 200].map((rank) => ({ rank, longest: rank <= 64 ? 10_000 : 2_000 }));

const variants: readonly Partial<NormalEquationsParams>[] = [
  { precision: 'f16' },
  { biases: true },
  { precision: 'f16', biases: true, vectorized: false },
  { staging: 'strided' },
  { staging: 'strided', precision: 'f16', vectorized: false },
  { vectorized: false },
  { accumulate: 'memory' },
  { triangle: 'full' },
  { tile: 4, lanes: 64, rows: 2, bin: 8 },
  { tile: 8, lanes: 16, rows: 4, bin: 4 },
  { tile: 4, lanes: 37, rows: 3, bin: 5 },
];

const cases: readonly Case[] = [
  ...mainRanks,
  { rank: 512, longest: 64 },
  ...variants.flatMap((changes) => [10, 40].map((rank) => ({ rank, longest: 600, changes }))),
  { rank: 100, longest: 300, changes: { precision: 'f16', biases: true } },
  { rank: 200, longest: 300, changes: { accumulate: 'memory' } },
];

/** Every part of every row against float64, over what the slots held before. */
export const normalEquationsChecks: readonly KernelCheck[] = cases.map(({ rank, longest, changes = {} }) => {
  const params = { ...chooseNormalEquations(rank, 'f32', false), ...changes };
  const variant = [`rank ${rank}`, ...Object.entries(changes).map(([name, value]) => `${name} ${value}`)].join(', ');
  return { name: normalEquationsKernel.name, variant, run: (gpu) => check(gpu, params, longest) };
});

async function check(gpu: Gpu, params: NormalEquationsParams, longest: number): Promise<{ error: number; limit: number }> {
  const { rank, precision, biases, bin } = params;
  const rows = ratedRows({ rank, biases, precision, lengths: [longest, bin + 1, bin, bin - 1, 2, 1, 0] });
  const parts = new EntryList();
  let slot = 0;
  for (let row = 0; row + 1 < rows.offsets.length; row++) {
    const [from, to] = [rows.offsets[row], rows.offsets[row + 1]];
    // The longest row in three parts, one of them a whole number of bins.
    const size = row === 0 ? Math.ceil(longest / 3 / bin) * bin : Math.max(1, to - from);
    for (let first = from; first === from || first < to; first += size) parts.add(row, first, Math.min(size, to - first), slot++);
  }
  const { entries, count } = parts.list;
  const elements = slotElements(rank);
  const content = new Float32Array(elements * count).fill(7e7);
  const buffers: Record<string, GPUBuffer> = {
    work: await gpu.bufferOf(entries, 'work'),
    indices: await gpu.bufferOf(rows.indices, 'indices'),
    values: await gpu.bufferOf(rows.values, 'values'),
    fixed: await gpu.bufferOf(precision === 'f16' ? rows.mirror : rows.theta, 'fixed'),
    fixed_bias: await gpu.bufferOf(rows.fixedBias, 'fixed_bias'),
    slots: await gpu.bufferOf(content, 'slots'),
  };
  const compiled = await gpu.compile(normalEquationsKernel, params);
  const { bytes } = await gpu
    .pass('check normal-equations')
    .dispatch(compiled, buffers, { count, mean: rows.mean }, normalEquationsWorkgroups(params, count))
    .submit({ read: { buffer: buffers.slots, bytes: content.byteLength } });
  for (const buffer of Object.values(buffers)) buffer.destroy();
  const result = new Float32Array(bytes);
  let error = 0;
  for (let i = 0; i < count; i++) {
    const [, first, ratings, slot] = entries.subarray(4 * i, 4 * i + 4);
    const expected = partEquations(rows, first, ratings);
    const found = readSlot(result.subarray(slot * elements, (slot + 1) * elements), rank);
    error = Math.max(error, deviation(found.matrix, expected.matrix), deviation(found.bias, expected.bias), padding(result.subarray(slot * elements, (slot + 1) * elements), rank));
  }
  return { error, limit: LIMIT };
}

/** The largest difference, over the largest element; NaN where there is one. */
export function deviation(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(found[i] - expected[i]));
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return difference / (largest || 1);
}

/** The largest element of a slot that belongs to no feature. */
function padding(slot: Float32Array, rank: number): number {
  const rest = Float32Array.from(slot);
  eachSlotElement(rank, (at) => (rest[at] = 0));
  rest.fill(0, slotElements(rank) - paddedRank(rank), slotElements(rank) - paddedRank(rank) + rank);
  return rest.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
}
