/** Checks of whole half-iterations by matrix-free CG, with various numbers of threads that share a rating. */
import { REGIONS, type UpdateVariant } from '../update/choice/variant.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { type KernelCheck, variantOf } from './support/check.ts';
import { checkHalfIteration, checkImplicit } from './half-iteration.check.ts';
import {
  chooseVectorProducts,
  vectorProductsKernel,
  type VectorProductsParams,
} from '../vectors/products.ts';

type Case = Omit<VectorProductsParams, 'first' | 'implicit'> & { readonly implicit?: boolean };

const narrow = { threads: 64, lanes: 4, width: 4 } as const;

const cases: readonly Case[] = [
  { ...narrow, rank: 1, precision: 'f16', biases: false },
  { ...narrow, rank: 20, precision: 'f32', biases: true },
  { ...narrow, rank: 50, precision: 'f16', biases: true },
  { ...narrow, lanes: 2, rank: 64, precision: 'f32', biases: false },
  { ...narrow, lanes: 1, rank: 30, precision: 'f16', biases: true },
  ...[200, 264, 400, 512].map((rank) => ({
    ...chooseVectorProducts(rank, 'f16'),
    rank,
    precision: 'f16' as const,
    biases: rank === 264,
  })),
  { ...chooseVectorProducts(300, 'f32'), rank: 300, precision: 'f32', biases: true },
  { ...narrow, rank: 50, precision: 'f16', biases: false, implicit: true },
  { ...narrow, rank: 140, precision: 'f32', biases: false, implicit: true },
  ...[200, 512].map((rank) => ({
    ...chooseVectorProducts(rank, 'f16'),
    rank,
    precision: 'f16' as const,
    biases: false,
    implicit: true,
  })),
];

/**
 * Ratings of the longest row: enough that it is cut into several parts and regions, and that a team of
 * threads takes several groups of ratings.
 */
const LONGEST = 1500;

export const vectorChecks: readonly KernelCheck[] = cases.map((params) => ({
  name: vectorProductsKernel.name,
  variant: variantOf(params),
  admitted: (gpu: Gpu) =>
    gpu.admits(vectorProductsKernel, { ...params, implicit: params.implicit === true, first: true }),
  run: (gpu: Gpu) => {
    const { rank, biases, implicit = false, precision, threads, lanes, width } = params;
    const variant: UpdateVariant = {
      name: 'vectors',
      precision,
      sum: { kernel: 'vectors', threads, lanes, width },
      short: 0,
      halfA: false,
      registers: false,
      partRatings: 0,
      regions: REGIONS,
    };
    return implicit
      ? checkImplicit(gpu, variant, { rank, solver: 'cg', alpha: 3 }, LONGEST)
      : checkHalfIteration(gpu, variant, { rank, solver: 'cg', biases }, LONGEST);
  },
}));
