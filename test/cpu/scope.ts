import { compileKernels, type KernelBuild } from '../../cpu/compile-kernels.ts';
import { RowProblem } from '../../cpu/generated/structs.ts';
import { type MatrixView, SCRATCH_BYTES, type TaskScope } from '../../cpu/handler.ts';
import { loadKernels } from '../../cpu/kernels.ts';
import { Struct } from '../../cpu/scratch.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type Partition, pieceOf, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { poisonScratch } from '../support/devices/poisoned-cpu.ts';

export const builds: readonly KernelBuild[] = ['relaxed-simd', 'simd'];

/** A WebAssembly memory with kernels, from which a test takes matrices one after the other. */
export class TestMemory {
  readonly memory: WebAssembly.Memory;
  readonly kernels;
  readonly scratch: number;
  #next: number;

  /** `megabytes`: in addition to the scratch. */
  constructor(build: KernelBuild, megabytes = 24) {
    this.memory = new WebAssembly.Memory({
      initial: (SCRATCH_BYTES >> 16) + megabytes * 16,
      maximum: 65_536,
      shared: true,
    });
    this.kernels = loadKernels(this.memory, compileKernels(build));
    this.scratch = 65_536;
    this.#next = this.scratch + SCRATCH_BYTES;
  }

  /** Address of `bytes` fresh bytes, 64-byte aligned. */
  allocate(bytes: number): number {
    const address = this.#next;
    this.#next += Math.ceil(bytes / 64) * 64;
    if (this.#next > this.memory.buffer.byteLength) throw new Error('the test needs more megabytes');
    return address;
  }

  /** Zeroes and takes back all that was allocated, for the next of many small cases. */
  reset(): this {
    const first = this.scratch + SCRATCH_BYTES;
    new Uint8Array(this.memory.buffer, first, this.#next - first).fill(0);
    this.#next = first;
    return this;
  }

  floats(address: number, count: number): Float32Array {
    return new Float32Array(this.memory.buffer, address, count);
  }

  copyIn(values: Float32Array | Uint32Array | Int32Array): number {
    const address = this.allocate(values.byteLength);
    new Uint32Array(this.memory.buffer, address, values.length).set(
      new Uint32Array(values.buffer, values.byteOffset, values.length),
    );
    return address;
  }

  /** A matrix of rows x rank with uniform elements in (-scale, scale), padding 0. */
  matrix(rows: number, rank: number, seed: number, scale = 1 / Math.sqrt(rank)): MatrixView {
    const stride = Math.ceil(rank / 8) * 8;
    const pointer = this.allocate(rows * stride * 4);
    const random = new CounterRandom(seed);
    const values = this.floats(pointer, rows * stride);
    for (let row = 0; row < rows; row++) {
      for (let k = 0; k < rank; k++)
        values[row * stride + k] = (2 * random.uniform(row * rank + k) - 1) * scale;
    }
    return { pointer, rows, columns: rank, stride };
  }

  /** A row's problem for the kernels; fields that are not given are 0. */
  problem(fields: Parameters<Struct<typeof RowProblem>['set']>[0]): Struct<typeof RowProblem> {
    return new Struct(this.memory, this.allocate(RowProblem.bytes), RowProblem).clear().set(fields);
  }

  values(matrix: MatrixView): Float32Array {
    return this.floats(matrix.pointer, matrix.rows * matrix.stride);
  }

  scope<Params extends JsonObject>(
    params: Params,
    partitions: Readonly<Record<string, Partition>>,
    matrices: Readonly<Record<string, MatrixView>>,
    cancelled = () => false,
  ): TaskScope<Params> {
    poisonScratch(this);
    return {
      params,
      partition: (name) => partitions[name] ?? fail(name),
      piece: (name, piece) => pieceOf(partitions[name] ?? fail(name), piece),
      hasInput: (name) => name in partitions || name in matrices,
      hasMatrix: (name) => name in matrices,
      matrix: (name) => matrices[name] ?? fail(name),
      scratch: this.scratch,
      memory: this.memory,
      kernels: this.kernels,
      cancelled,
    };
  }
}

function fail(name: string): never {
  throw new Error(`the test gives no ${name}`);
}

/** A rating-block with rows of the given lengths, columns ascending and ratings 0.5 .. 5. */
export function ratingBlock(lengths: readonly number[], columns: number, seed: number): Partition {
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const offsets = sharedArray(Int32Array, lengths.length + 1);
  const indices = sharedArray(Uint32Array, total);
  const values = sharedArray(Float32Array, total);
  const random = new CounterRandom(seed, 1);
  lengths.forEach((length, row) => {
    const start = offsets[row];
    offsets[row + 1] = start + length;
    for (let k = start; k < start + length; k++) {
      indices[k] = random.below(2 * k, columns);
      values[k] = 0.5 + 0.5 * random.below(2 * k + 1, 10);
    }
    indices.subarray(start, start + length).sort();
  });
  return { layout: 'rating-block', rows: lengths.length, columns: { offsets, indices, values } };
}

/** The ratings of one row of a block. */
export function rowOf(block: Partition, row: number) {
  const { offsets, indices, values } = block.columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  return {
    indices: indices.subarray(offsets[row], offsets[row + 1]),
    values: values.subarray(offsets[row], offsets[row + 1]),
  };
}

/** Ratings without μ and γ, of one row of a block. */
export function centredRow(block: Partition, row: number, mean: number, gamma: Float32Array) {
  const { indices, values } = rowOf(block, row);
  return { indices, values: Float64Array.from(values, (value, k) => value - mean - gamma[indices[k]]) };
}

/** The numbers of a column, for example biases. */
export const columnOf = (values: Float32Array, layout = 'bias'): Partition => ({
  layout,
  rows: values.length,
  columns: { values },
});

/** Θ with levels far from 0, which test the elimination of biases: s is then large. */
export function liftedMatrix(memory: TestMemory, rows: number, rank: number): MatrixView {
  const theta = memory.matrix(rows, rank, 1);
  const values = memory.values(theta);
  for (let row = 0; row < rows; row++) for (let k = 0; k < rank; k++) values[row * theta.stride + k] += 0.1;
  return theta;
}

/** Copies of a matrix's rows, with their padding. */
export function rowsOfMatrix(memory: TestMemory, matrix: MatrixView): Float32Array[] {
  const { stride } = matrix;
  return Array.from({ length: matrix.rows }, (_, row) =>
    memory.values(matrix).slice(row * stride, (row + 1) * stride),
  );
}

export function norm(x: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * x[i];
  return Math.sqrt(sum);
}

/** ‖x - y‖ / ‖y‖ */
export function relativeDistance(x: ArrayLike<number>, y: ArrayLike<number>): number {
  return norm(Array.from(y, (value, i) => x[i] - value)) / (norm(y) || 1);
}

/** ‖A x - b‖ / (‖A‖ ‖x‖ + ‖b‖) with the Frobenius norm. */
export function residual(matrix: Float64Array, x: ArrayLike<number>, bias: Float64Array): number {
  const rank = bias.length;
  const rest = Array.from(bias, (value, i) => {
    let sum = -value;
    for (let j = 0; j < rank; j++) sum += matrix[i * rank + j] * x[j];
    return sum;
  });
  return norm(rest) / (norm(matrix) * norm(x) + norm(bias) || 1);
}

/** A block with, for each row of another block, the first column that the row does not have. */
export function missingColumns(block: Partition, columnCount: number): Partition {
  const { offsets, indices } = block.columns as { offsets: Int32Array; indices: Uint32Array };
  const free = Array.from({ length: block.rows }, (_, row) =>
    Array.from({ length: columnCount }, (_, column) => column)
      .filter((column) => !indices.subarray(offsets[row], offsets[row + 1]).includes(column))
      .slice(0, 1),
  );
  const listedOffsets = sharedArray(Int32Array, block.rows + 1);
  free.forEach((columns, row) => (listedOffsets[row + 1] = listedOffsets[row] + columns.length));
  const columns = sharedArray(Uint32Array, listedOffsets[block.rows]);
  columns.set(free.flat());
  return {
    layout: 'rating-block',
    rows: block.rows,
    columns: { offsets: listedOffsets, indices: columns, values: sharedArray(Float32Array, 0) },
  };
}
