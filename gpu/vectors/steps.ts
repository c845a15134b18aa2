import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { PreparedRows } from '../update/prepared-rows.ts';
import type { SumKernel, UpdateSettings } from '../update/choice/variant.ts';
import { type RatedBuffers, ratingProducts } from './products.ts';
import { multipliedRows, phaseBuffers, RowPhases } from './row-phases.ts';
import { vectorQuads } from './vectors.ts';

/** The buffers of a half-iteration. */
interface RowBuffers extends RatedBuffers {
  readonly previous: Binding;
  /** The Gram matrix; of implicit data only. */
  readonly gram?: Binding;
  readonly shifts: Binding;
  readonly factors: Binding;
  readonly half: Binding;
  readonly bias: Binding;
  readonly status: Binding;
}

interface VectorSettings extends Omit<UpdateSettings, 'variant'> {
  readonly sum: Extract<SumKernel, { readonly kernel: 'vectors' }>;
  readonly half: boolean;
  readonly biases: boolean;
  readonly steps: number;
}

/**
 * Adds to a pass the kernels that solve batches of rows by matrix-free conjugate gradients, on one device.
 * The phases are the same as with several devices (exchanged-vectors.ts), but products stay in the parts'
 * slots. The ratings are read once for the residual, and once in each step.
 */
export async function addVectorSteps(
  gpu: Gpu,
  pass: Pass,
  { batches, slotBytes }: PreparedRows,
  settings: VectorSettings,
  { previous, ...bindings }: RowBuffers,
): Promise<void> {
  const { rank, biases, steps, implicit } = settings;
  const [residuals, products, phases] = await compileVectorSteps(gpu, settings);
  const most = batches.reduce((rows, { rowCount }) => Math.max(rows, rowCount), 1);
  const { quads, gradients } = vectorQuads(rank, biases);
  const slots = await gpu.scratch('slots', slotBytes);
  const multiplied = multipliedRows({ rank, implicit: implicit !== undefined, listed: true }, most);
  const buffers = await phaseBuffers(gpu, {
    ...bindings,
    given: slots,
    gradients: await gpu.scratch('gradients', 16 * gradients * most),
    direction: await gpu.scratch('directions', 16 * quads * most),
    ...(multiplied > 0 ? { multiplied: await gpu.scratch('gram products', 16 * quads * multiplied) } : {}),
  });
  const multiply = { residuals: residuals(bindings), products: products(bindings) };
  for (const batch of batches) {
    const own = { ...buffers, work: batch.rows };
    const rows = { count: batch.rowCount };
    phases.add(pass, 'gather', { ...own, given: previous }, rows);
    multiply.residuals(pass, batch, own.direction, slots);
    phases.add(pass, 'begin', own, rows);
    for (let step = 0; step < steps; step++) {
      multiply.products(pass, batch, own.direction, slots);
      phases.add(pass, 'step', own, rows);
    }
    phases.add(pass, 'end', own, rows);
  }
}

/**
 * Compiles the kernels of addVectorSteps: the product for the residual, the product of a step, and the
 * phases between them.
 */
export function compileVectorSteps(
  gpu: Gpu,
  {
    rank,
    sum,
    half,
    biases,
    implicit,
  }: Pick<VectorSettings, 'rank' | 'sum' | 'half' | 'biases' | 'implicit'>,
) {
  const { threads, lanes, width } = sum;
  const precision = half ? 'f16' : 'f32';
  const shape = { rank, precision, biases, implicit, teams: { threads, lanes, width } } as const;
  return Promise.all([
    ratingProducts(gpu, { ...shape, first: true }),
    ratingProducts(gpu, { ...shape, first: false }),
    RowPhases.compile(gpu, { rank, biases, half, implicit: implicit !== undefined, listed: true }, [
      'gather',
      'begin',
      'step',
      'end',
    ]),
  ]);
}
