/** Checks of conjugate gradients by vectors in whole half-iterations, with teams of subgroups of any size. */
import type { UpdateVariant } from '../../update/variant.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, variantOf } from '../checking/check.ts';
import { checkHalfIteration } from '../update/half-iteration.check.ts';
import { vectorProductsKernel } from './vector-products.ts';

interface Case {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  readonly threads: number;
  readonly lanes: number;
}

const narrow = { threads: 64, lanes: 4 } as const;
const wide = { threads: 128, lanes: 32 } as const;

const cases: readonly Case[] = [
  { ...narrow, rank: 1, precision: 'f16', biases: false },
  { ...narrow, rank: 20, precision: 'f32', biases: true },
  { ...narrow, rank: 50, precision: 'f16', biases: true },
  { ...narrow, lanes: 2, rank: 64, precision: 'f32', biases: false },
  ...[193, 264, 512].map((rank) => ({ ...wide, rank, precision: 'f16' as const, biases: rank === 264 })),
  { ...wide, rank: 300, precision: 'f32', biases: true },
];

/** Ratings of the longest row: several parts, regions and bins of a team. */
const LONGEST = 1500;

export const vectorChecks: readonly KernelCheck[] = cases.map(({ rank, precision, biases, threads, lanes }) => ({
  name: vectorProductsKernel.name,
  variant: variantOf({ rank, precision, biases, threads, lanes }),
  admitted: (gpu: Gpu) => gpu.admits(vectorProductsKernel, { rank, precision, biases, threads, lanes, first: true }),
  run: (gpu: Gpu) => {
    const variant: UpdateVariant = { name: 'vectors', precision, sum: { kernel: 'vectors', threads, lanes }, short: 0, free: false, halfA: false, registers: false, partRatings: 0, regionBytes: 0, sorted: true };
    return checkHalfIteration(gpu, variant, { rank, solver: 'cg', biases }, LONGEST);
  },
}));
