import { destroyBuffers, type DeviceBlock, type DeviceMatrix } from '../../device/resources.ts';
import { addGramMatrix } from '../../implicit/gram.ts';
import { updateRows } from '../../update/half-iteration.ts';
import type { SolvedPass } from '../../update/solved-pass.ts';
import type { UpdateSettings } from '../../update/choice/variant.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { GRAM_WEIGHT, problemBuffers, type RatedProblem, shiftOf } from './rated-problem.ts';
import { downloadOutputs, type RowData } from './solved-rows.ts';
import { uploadAll } from './run-kernel.ts';

/** What a half-iteration wrote and returned. */
export interface SolvedProblem
  extends Pick<RowData, 'factors' | 'half' | 'bias'>, Pick<SolvedPass, 'badRow' | 'objective'> {
  /** For implicit data, the Gram matrix that the GPU computed: stride x stride. */
  readonly gram: Float32Array;
}

/** Solves all rows of a problem by one half-iteration. */
export async function solveProblem(
  gpu: Gpu,
  problem: RatedProblem,
  settings: Pick<UpdateSettings, 'variant' | 'solver' | 'scale' | 'measured'>,
): Promise<SolvedProblem> {
  const { ratings, lengths, biases, implicit, regularization } = problem;
  const { rank, stride, offsets, columns } = ratings;
  const rows = lengths.length;
  const gram = new Float32Array(implicit ? stride * stride : 4);
  const buffers = {
    ...(await problemBuffers(gpu, problem, 'f32', true)),
    ...(await uploadAll(gpu, {
      mirror: ratings.mirror,
      rowPointers: offsets,
      gram,
      shifts: Float32Array.from(lengths, (_, row) => shiftOf(row)),
    })),
  };
  const half = settings.variant.precision !== 'f32';
  const matrix = (values: GPUBuffer, count: number, mirror?: GPUBuffer): DeviceMatrix => ({
    rows: count,
    columns: rank,
    stride,
    values,
    half: half ? mirror : undefined,
  });
  const fixed = matrix(buffers.fixed, columns, buffers.mirror);
  if (implicit) {
    const pass = gpu.pass('check gram');
    await addGramMatrix(gpu, pass, fixed, buffers.gram, rank, GRAM_WEIGHT);
    await pass.submit();
    await gpu.download(buffers.gram, gram);
  }
  const block: DeviceBlock = {
    rows,
    ratings: offsets[rows],
    offsets,
    columns: ratings.indices,
    rowPointers: buffers.rowPointers,
    indices: buffers.indices,
    values: buffers.values,
    prepared: new Map(),
  };
  const inputs = {
    block,
    fixed,
    previous: matrix(buffers.previous, rows),
    factors: matrix(buffers.factors, rows, buffers.half),
    ...(biases && { fixedBias: buffers.fixed_bias, bias: buffers.bias }),
    ...(implicit && { gram: buffers.gram, shifts: buffers.shifts }),
  };
  const { badRow, objective } = await updateRows(gpu, inputs, {
    ...settings,
    from: 0,
    to: rows,
    rank,
    ...(implicit ? { lambda: 0, implicit: implicit.weights } : regularization),
    mean: biases ? ratings.mean : 0,
  });
  const outputs = await downloadOutputs(gpu, buffers, problem);
  destroyBuffers({ buffers, lists: [...block.prepared.values()] });
  return { ...outputs, badRow, objective, gram };
}
