/** Replaces gpu/registry.ts in the threads of tests; see poison.ts. */
import type { DeviceMatrix } from '../../../gpu/device/resources.ts';
import type { GpuTaskScope } from '../../../gpu/handler.ts';
import * as registry from '../../../gpu/registry.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { NAN_BITS, rowsWritten, writtenBy } from './poison.ts';

/** Two NaN in float16. */
const NAN_HALVES = 0x7e00_7e00;

export const handleBy: typeof registry.handleBy = (handlers) => {
  const handle = registry.handleBy(handlers);
  return (kernel, scope) => {
    poisonedScratch(scope.gpu).clear();
    poisonOutputs(kernel, scope);
    return handle(kernel, scope);
  };
};

/** For each GPU, the labels of the scratch buffers that the current task has used. */
const used = new WeakMap<Gpu, Set<string>>();

/** From now on, a scratch buffer holds NaN when a task first asks for it. */
function poisonedScratch(gpu: Gpu): Set<string> {
  const known = used.get(gpu);
  if (known !== undefined) return known;
  const labels = new Set<string>();
  used.set(gpu, labels);
  const scratch = gpu.scratch.bind(gpu);
  gpu.scratch = async (label, bytes, options) => {
    const buffer = await scratch(label, bytes, options);
    if (!labels.has(label) && !options?.passage) fill(gpu, buffer, 0, buffer.size, NAN_BITS);
    labels.add(label);
    return buffer;
  };
  return labels;
}

function poisonOutputs(kernel: string, { gpu, hasMatrix, matrixOrHalf, params }: GpuTaskScope): void {
  const inputs = ['previous', 'source', 'sourceRows', 'sourceColumns', 'sourceRowSums', 'sourceColumnSums']
    .filter(hasMatrix)
    .map(matrixOrHalf);
  for (const name of writtenBy(kernel).filter(hasMatrix)) {
    const matrix = matrixOrHalf(name);
    if (matrix === undefined || inputs.includes(matrix)) continue;
    poisonRows(gpu, matrix, rowsWritten(kernel, params, matrix.rows));
  }
}

function poisonRows(
  gpu: Gpu,
  { stride, values, half, halfOnly }: DeviceMatrix,
  [from, to]: readonly [number, number],
): void {
  if (!halfOnly) fill(gpu, values, 4 * from * stride, 4 * to * stride, NAN_BITS);
  if (half) fill(gpu, half, 2 * from * stride, 2 * to * stride, NAN_HALVES);
}

const PIECE = 1 << 20;

/** Fills the bytes [from, to) of a buffer with copies of a word. */
function fill(gpu: Gpu, buffer: GPUBuffer, from: number, to: number, word: number): void {
  const words = new Uint32Array(Math.min(PIECE, to - from) / 4).fill(word);
  for (let at = from; at < to; at += PIECE)
    gpu.device.queue.writeBuffer(buffer, at, words, 0, Math.min(PIECE, to - at) / 4);
}
