import { slotElements } from '../device/slots.ts';
import {
  chooseNormalEquations,
  normalEquationsKernel,
  normalEquationsWorkgroups,
} from '../equations/normal-equations.ts';
import { EntryList, type Parts } from '../update/deal-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../webgpu/kernel.ts';
import { CHECKED_RANKS, type KernelCheck, deviation } from './support/check.ts';
import { partEquations, ratedBuffers, type RatedRows, ratedRows, readSlot } from './support/rated-rows.ts';
import { uploadAll } from './support/run-kernel.ts';

/** Limit of the error, relative to the largest element of A or b: the rounding of some thousand additions. */
const LIMIT = 1e-5;

interface Case {
  readonly rank: number;
  readonly longest: number;
  readonly precision?: 'f32' | 'f16';
  readonly biases?: boolean;
  readonly options?: Parameters<typeof chooseNormalEquations>[3];
}

const mainRanks: readonly Case[] = [...CHECKED_RANKS, 33].map((rank) => ({
  rank,
  longest: rank <= 64 ? 10_000 : 2_000,
}));

const forms: readonly Omit<Case, 'rank' | 'longest'>[] = [
  { precision: 'f16' },
  { biases: true },
  { precision: 'f16', biases: true, options: { tile: 8 } },
  { options: { tile: 4, threads: 64 } },
  { biases: true, options: { tile: 8, threads: 16, bytes: 2048 } },
];

const cases: readonly Case[] = [
  ...mainRanks,
  { rank: 512, longest: 64 },
  ...forms.flatMap((form) => [10, 40].map((rank) => ({ rank, longest: 600, ...form }))),
  { rank: 100, longest: 300, precision: 'f16', biases: true },
];

/** Checks of the kernel that sums normal equations without tensor cores. */
export const normalEquationsChecks: readonly KernelCheck[] = cases.map(
  ({ rank, longest, precision = 'f32', biases = false, options = {} }) => {
    const params = chooseNormalEquations(rank, precision, biases, options);
    const bin = params.teams * params.loads;
    const variant = [
      `rank ${rank}`,
      ...(precision === 'f16' ? ['f16'] : []),
      ...(biases ? ['biases'] : []),
      ...Object.entries(options).map(([name, value]) => `${name} ${value}`),
    ].join(', ');
    return sumCheck(normalEquationsKernel, params, variant, {
      precision,
      lengths: [longest, bin + 1, bin, bin - 1, 2, 1, 0],
      // The longest row has three parts, and at least one has a number of ratings that fills whole bins.
      part: Math.ceil(longest / 3 / bin) * bin,
      workgroups: (parts) => normalEquationsWorkgroups(params, parts),
      limit: LIMIT,
    });
  },
);

interface SumCase extends Partial<Pick<SumOptions, 'raw'>> {
  readonly precision: SumOptions['precision'];
  readonly lengths: readonly number[];
  /** Most ratings of a part of a row. */
  readonly part: number;
  readonly scale?: number;
  /** Default: one for each part. */
  readonly workgroups?: (parts: number) => number;
  readonly limit: number;
}

/** Checks the equations of every part of every row that a kernel sums against float64. */
export function sumCheck<Params extends KernelParams & { readonly rank: number; readonly biases: boolean }>(
  kernel: KernelDescriptor<Params>,
  params: Params,
  variant: string,
  { precision, lengths, part, scale = 1, raw, workgroups = (parts) => parts, limit }: SumCase,
): KernelCheck {
  return {
    name: kernel.name,
    variant,
    admitted: (gpu) => gpu.admits(kernel, params),
    run: async (gpu) => {
      const { rank, biases } = params;
      const rows = ratedRows({ rank, biases, precision, lengths });
      const parts = partsOf(rows, part);
      const uniforms = { zero_row: rows.columns, scale, unscale: 1 / scale };
      const options = { precision, uniforms, workgroups: workgroups(parts.count), raw };
      const slots = await summedSlots(gpu, kernel, params, rows, parts, options);
      return { error: slotsError(rows, parts, slots), limit };
    },
  };
}

/**
 * Cuts the rows' ratings into parts of at most `size`, each with a slot for its sums. A row without ratings
 * has one empty part.
 */
export function partsOf({ offsets }: RatedRows, size: number): Parts {
  const parts = new EntryList();
  let slot = 0;
  for (let row = 0; row + 1 < offsets.length; row++) {
    const [from, to] = [offsets[row], offsets[row + 1]];
    for (let first = from; first === from || first < to; first += size)
      parts.add(row, first, Math.min(size, to - first), slot++);
  }
  return parts.list;
}

export interface SumOptions {
  readonly precision: 'f32' | 'f16' | 'int8';
  /** Uniforms besides count. */
  readonly uniforms: Readonly<Record<string, number>>;
  readonly workgroups: number;
  /** True for a kernel that subtracts mean and biases from the ratings itself. */
  readonly raw?: boolean;
}

/**
 * Runs a kernel that sums parts, and returns the slots that it wrote. They are first filled with other
 * numbers.
 */
export async function summedSlots<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  rows: RatedRows,
  { entries, count }: Parts,
  { precision, uniforms, workgroups, raw = false }: SumOptions,
): Promise<Float32Array> {
  const content = new Float32Array(slotElements(rows.rank, rows.biases) * count).fill(7e7);
  const buffers = {
    ...(await ratedBuffers(gpu, rows, precision, raw)),
    ...(await uploadAll(gpu, { work: entries, slots: content })),
  };
  const compiled = await gpu.compile(kernel, params);
  const { bytes } = await gpu
    .pass(`check ${kernel.name}`)
    .dispatch(compiled, buffers, { ...uniforms, count, alpha: 0, base: 0, mean: rows.mean }, workgroups)
    .submit({ read: { buffer: buffers.slots, bytes: content.byteLength } });
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return new Float32Array(bytes);
}

/** The largest error of A or b over the parts. */
export function slotsError(rows: RatedRows, { entries, count }: Parts, slots: Float32Array): number {
  const elements = slotElements(rows.rank, rows.biases);
  let error = 0;
  for (let i = 0; i < count; i++) {
    const [, first, ratings, slot] = entries.subarray(4 * i, 4 * i + 4);
    const expected = partEquations(rows, first, ratings);
    const found = readSlot(
      slots.subarray(slot * elements, (slot + 1) * elements),
      rows.rank,
      rows.biases,
      ratings,
    );
    error = Math.max(error, deviation(found.matrix, expected.matrix), deviation(found.bias, expected.bias));
  }
  return error;
}
