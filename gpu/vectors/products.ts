/**
 * Chooses the kernel that multiplies ratings by vectors, for matrix-free conjugate gradients. Rows are cut
 * into parts of ratings. For each part the kernel computes the part's term of A p, or of the residual b - A
 * x, and writes it to the part's slot (layout: vectors.ts).
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
  /** The division of ratings among threads, for the kernel with subgroups; default: that kernel's choice. */
  readonly teams?: Teams;
}

/** The buffers of a block of ratings, and of the factors of its columns. */
export interface RatedBuffers {
  readonly indices: Binding;
  readonly values: Binding;
  readonly fixed: Binding;
}

/**
 * Adds a kernel to a pass: it multiplies the parts of a batch of rows by the rows' vectors and writes the
 * results to the parts' slots.
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
