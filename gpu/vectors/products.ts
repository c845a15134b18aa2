/**
 * Kernels that multiply rows by their vectors, the part of a CG step that depends on how A is represented.
 * From the ratings of a part of a row and a vector of the row they compute the part's term of A p, or of the
 * residual b - A x, into the part's slot (vectors.ts). `work` lists row of the vectors, first rating,
 * ratings, slot.
 */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import type { RowBatch } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding } from '../webgpu/compiled-kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { partProductsKernel } from './part-products.ts';
import { chooseVectorProducts, vectorProductsKernel, type VectorProductsParams } from './vector-products.ts';

export type Teams = Pick<VectorProductsParams, 'threads' | 'lanes' | 'width'>;

export interface ProductShape {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  readonly implicit?: ImplicitWeights;
  /** Computes the residual b - A x instead of A p. */
  readonly first: boolean;
  /** Teams of the kernel with subgroups; default: the kernel's own choice. */
  readonly teams?: Teams;
}

/** The buffers of a block, and of the factors that its ratings are multiplied with. */
export interface RatedBuffers {
  readonly indices: Binding;
  readonly values: Binding;
  readonly fixed: Binding;
}

/**
 * Adds to a pass: multiplies the parts of a batch by the vectors of their rows, and writes the results to
 * the parts' slots.
 */
export type Multiply = (pass: Pass, batch: RowBatch, vectors: Binding, slots: Binding) => void;

/**
 * Compiles the kernel that multiplies the ratings of a block by vectors: the one with subgroups if the
 * adapter has them.
 */
export async function ratingProducts(gpu: Gpu, shape: ProductShape): Promise<(of: RatedBuffers) => Multiply> {
  const { rank, precision, biases, first, implicit, teams = chooseVectorProducts(rank, precision) } = shape;
  const byTeams = { rank, precision, biases, first, ...teams };
  const compiled =
    implicit === undefined && gpu.admits(vectorProductsKernel, byTeams)
      ? await gpu.compile(vectorProductsKernel, byTeams)
      : await gpu.compile(partProductsKernel, {
          rank,
          precision,
          biases,
          first,
          implicit: implicit !== undefined,
        });
  return (rated) => (pass, batch, vectors, slots) =>
    void pass.dispatch(
      compiled,
      { ...rated, work: batch.parts, vectors, slots },
      { count: batch.partCount, ...(implicit ?? { alpha: 0, base: 0 }) },
      batch.partCount,
    );
}
