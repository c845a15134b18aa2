/**
 * Chooses the kernel that multiplies ratings by vectors, for matrix-free conjugate gradients. Rows are cut
 * into parts of ratings. For each part the kernel computes the part's term of A p, or of the residual b - A
 * x, and writes it to the part's slot (layout: vectors.ts).
 */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import { MOST_FORMED } from '../device/slots.ts';
import type { RowBatch } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { chooseVectorProducts, vectorProductsKernel, type VectorProductsParams } from './vector-products.ts';
import { wideProductsKernel, WIDTHS } from './wide-products.ts';

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

/** Compiles the kernel that multiplies the ratings of a block by vectors. */
export async function ratingProducts(gpu: Gpu, shape: ProductShape): Promise<(of: RatedBuffers) => Multiply> {
  const { implicit } = shape;
  const compiled = await compileProducts(gpu, shape);
  return (rated) => (pass, batch, vectors, slots) =>
    void pass.dispatch(
      compiled,
      { ...rated, work: batch.parts, vectors, slots },
      { count: batch.partCount, ...(implicit ?? { alpha: 0, base: 0 }) },
      batch.partCount,
    );
}

/** The kernel vector-products up to rank 512, if the adapter has its subgroups; else wide-products. */
function compileProducts(gpu: Gpu, shape: ProductShape): Promise<CompiledKernel> {
  const { rank, precision, biases, first, teams } = shape;
  const parts = { rank, precision, biases, implicit: shape.implicit !== undefined, first };
  const byTeams = { ...parts, ...(teams ?? chooseVectorProducts(rank, precision)) };
  if (rank <= MOST_FORMED && gpu.admits(vectorProductsKernel, byTeams))
    return gpu.compile(vectorProductsKernel, byTeams);
  const widths = teams === undefined ? WIDTHS : [teams.width];
  const width = widths.find((one) => gpu.admits(wideProductsKernel, { ...parts, width: one })) ?? 1;
  return gpu.compile(wideProductsKernel, { ...parts, width });
}
