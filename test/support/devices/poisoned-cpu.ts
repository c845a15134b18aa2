/** Replaces cpu/registry.ts in the threads of tests; see poison.ts. */
import { type MatrixView, SCRATCH_BYTES, type TaskScope } from '../../../cpu/handler.ts';
import * as registry from '../../../cpu/registry.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { NAN_BITS, rowsWritten, writtenBy } from './poison.ts';

export const handlerOf: typeof registry.handlerOf = (kernel) => {
  const handler = registry.handlerOf(kernel);
  if (handler === undefined) return undefined;
  return (scope) => {
    poisonScratch(scope);
    const outputs = outputsOf(kernel, scope);
    for (const { matrix, rows, columns } of outputs) poisonRows(scope.memory, matrix, rows, columns);
    const outcome = handler(scope);
    for (const output of outputs) requireZeros(kernel, scope.memory, output);
    return outcome;
  };
};

interface Output {
  readonly name: string;
  readonly matrix: MatrixView;
  readonly rows: readonly [number, number];
  readonly columns: readonly [number, number];
}

/** The matrices that a task writes, without those that are inputs as well. */
function outputsOf(kernel: string, scope: TaskScope): Output[] {
  const { hasMatrix, matrix, params } = scope;
  const names = writtenBy(kernel).filter(hasMatrix);
  const inputs = ['previous', 'source'].filter(hasMatrix).map((name) => matrix(name).pointer);
  return names
    .map((name) => ({
      name,
      matrix: matrix(name),
      rows: rowsWritten(kernel, params, matrix(name).rows),
      columns: columnsWritten(kernel, params, matrix(name)),
    }))
    .filter(({ matrix: { pointer } }) => !inputs.includes(pointer));
}

/** Left of the columns of G are the numbers of earlier rows, since G is symmetric. */
function columnsWritten(kernel: string, params: JsonObject, { stride }: MatrixView): [number, number] {
  const [from, to] = [Number(params.from), 8 * Math.ceil(Number(params.to) / 8)];
  if (kernel === 'fit-coefficients') return [from, to];
  return [kernel === 'gram' ? from : 0, stride];
}

/**
 * Bytes of scratch from its beginning, and the words in which one that is not NaN shows that a task has written
 * some of them: all are looked at before every task.
 */
const LOOKED = [
  { from: 0, to: 1 << 20, words: 256 },
  { from: 1 << 20, to: SCRATCH_BYTES, words: 4096 },
];

export function poisonScratch({ memory, scratch }: Pick<TaskScope, 'memory' | 'scratch'>): void {
  for (const { from, to, words } of LOOKED) {
    const all = new Uint32Array(memory.buffer, scratch + from, (to - from) / 4);
    for (let at = 0; at < all.length; at += words)
      if (all[at] !== NAN_BITS || all[at + words - 1] !== NAN_BITS) all.fill(NAN_BITS, at, at + words);
  }
}

function poisonRows(
  memory: WebAssembly.Memory,
  { pointer, stride }: MatrixView,
  [from, to]: readonly [number, number],
  [first, last]: readonly [number, number],
): void {
  const words = new Uint32Array(memory.buffer, pointer, to * stride);
  for (let row = from; row < to; row++) words.fill(NAN_BITS, row * stride + first, row * stride + last);
}

/** Throws an error if the padding of a row that was written is not 0. A row that is not finite is reported otherwise. */
function requireZeros(
  kernel: string,
  memory: WebAssembly.Memory,
  { name, matrix: { pointer, columns, stride }, rows: [from, to] }: Output,
): void {
  if (stride === columns) return;
  const numbers = new Float32Array(memory.buffer, pointer, to * stride);
  const isFinite = (row: number) =>
    numbers.subarray(row * stride, row * stride + columns).every(Number.isFinite);
  // Other tasks may be writing the other columns.
  if (kernel === 'fit-coefficients') return;
  for (let row = from; row < to; row++)
    for (let k = columns; k < stride; k++)
      if (numbers[row * stride + k] !== 0 && isFinite(row))
        throw new Error(
          `the task ${kernel} left ${numbers[row * stride + k]} in the padding of ${name}, row ${row}, column ${k}`,
        );
}
