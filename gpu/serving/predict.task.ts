import { sharedArray } from '../../engine/partition.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { kernelOf } from '../webgpu/kernel.ts';

/** Threads of a workgroup. It computes the same number of pairs. */
const PREDICT_THREADS = 64;

type PredictParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
};

/**
 * Predictions x_uᵀθ_v for pairs (u, v): `rows` has the pairs' rows of row_factors, `columns` their rows of
 * column_factors.
 */
export const predictKernel = kernelOf<PredictParams>()({
  name: 'predict',
  reads: {
    rows: 'array<u32>',
    columns: 'array<u32>',
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
  },
  writes: { predictions: 'array<f32>' },
  uniforms: { pairs: 'u32' },
  values: ({ stride }) => ({
    THREADS: PREDICT_THREADS,
    QUADS: stride / 4,
    parts: Array.from({ length: stride / 16 }, (_, part) => 4 * part),
  }),
  bytes: 4 * 4 * (PREDICT_THREADS + 1),
  samples: [{ stride: 112 }],
});

/** Pairs on the device at a time. */
const CHUNK_PAIRS = 1 << 22;

/** See `predict` of KernelTasks. */
export const predict: GpuTaskHandler<'predict'> = async (scope) => {
  const { gpu } = scope;
  const pairs = scope.partition('pairs');
  const { rows, columns } = pairs.columns as { rows: Uint32Array; columns: Uint32Array };
  const [rowFactors, columnFactors] = [scope.matrix('rowFactors'), scope.matrix('columnFactors')];
  const kernel = await gpu.compile(predictKernel, { stride: rowFactors.stride });
  const values = sharedArray(Float32Array, pairs.rows);
  const bytes = 4 * Math.min(CHUNK_PAIRS, pairs.rows);
  const buffers: GPUBuffer[] = [];
  try {
    for (const name of ['rows', 'columns', 'predictions'])
      buffers.push(await gpu.buffer(bytes, `${name} of pairs`));
    const [rowsAt, columnsAt, predictions] = buffers;
    const bindings = {
      rows: rowsAt,
      columns: columnsAt,
      row_factors: rowFactors.values,
      column_factors: columnFactors.values,
      predictions,
    };
    for (let first = 0; first < pairs.rows && !scope.cancelled(); first += CHUNK_PAIRS) {
      const end = Math.min(first + CHUNK_PAIRS, pairs.rows);
      await gpu.upload(rowsAt, rows.subarray(first, end));
      await gpu.upload(columnsAt, columns.subarray(first, end));
      await gpu
        .pass('predict')
        .dispatch(kernel, bindings, { pairs: end - first }, { threads: end - first })
        .submit();
      await gpu.download(predictions, values.subarray(first, end));
    }
  } finally {
    for (const buffer of buffers) buffer.destroy();
  }
  return {
    rows: pairs.rows,
    bytesUp: 8 * pairs.rows,
    bytesDown: 4 * pairs.rows,
    partitions: { predictions: { layout: 'predictions', rows: pairs.rows, columns: { values } } },
  };
};
