import type { JsonObject } from '../../../engine/json.ts';
import type { Partition } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import {
  destroyBuffers,
  type DeviceBlock,
  type DeviceList,
  type DeviceMatrix,
  strideOf,
} from '../../device/resources.ts';
import type { GpuTaskScope } from '../../handler.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { halfBits, roundToHalf } from './float16.ts';

/** A matrix of a check on the host: row-major rows x stride, padding 0. */
export interface HostMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  readonly values: Float32Array;
  /** Its half mirror, two halves in each word. */
  readonly half?: Uint32Array;
}

export interface HostBlock {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/** Ratings in visiting order. */
export interface HostList {
  readonly rows: Uint32Array;
  readonly columns: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Inputs and outputs for a task's handler, by the task's names. If the handler requests a half mirror
 * (float16 copy) that is not given, it is zeros.
 */
export interface CheckInputs {
  readonly matrices?: Readonly<Record<string, HostMatrix>>;
  readonly blocks?: Readonly<Record<string, HostBlock>>;
  readonly lists?: Readonly<Record<string, HostList>>;
  readonly vectors?: Readonly<Record<string, Float32Array | Uint32Array>>;
  readonly partitions?: Readonly<Record<string, Partition>>;
}

/** A matrix whose elements `element` computes. */
export function hostMatrix(
  rows: number,
  columns: number,
  element: (row: number, column: number) => number,
): HostMatrix {
  const stride = strideOf(columns);
  const values = new Float32Array(rows * stride);
  for (let row = 0; row < rows; row++)
    for (let k = 0; k < columns; k++) values[row * stride + k] = element(row, k);
  return { rows, columns, stride, values };
}

/** A matrix of uniform elements in ±1 / √columns, so that products of two rows are at most about 1 / 3. */
export function randomMatrix(rows: number, columns: number, seed: number): HostMatrix {
  const random = new CounterRandom(seed);
  return hostMatrix(
    rows,
    columns,
    (row, k) => (2 * random.uniform(row * columns + k) - 1) / Math.sqrt(columns),
  );
}

/** The matrix rounded to float16, with its half mirror. */
export function mirrored({ values, ...shape }: HostMatrix): HostMatrix {
  const bits = new Uint16Array(values.length + shape.stride);
  values.forEach((value, at) => (bits[at] = halfBits(value)));
  return { ...shape, values: values.map(roundToHalf), half: new Uint32Array(bits.buffer) };
}

/**
 * Rows of the given lengths with ratings 0.5 .. 5. Columns ascend within a row, and are distinct where there
 * are enough columns.
 */
export function randomBlock(lengths: readonly number[], columns: number, seed: number): HostBlock {
  const random = new CounterRandom(seed);
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, row) => (offsets[row + 1] = offsets[row] + length));
  const indices = new Uint32Array(offsets[lengths.length]);
  const values = Float32Array.from(indices, (_, k) => 0.5 + 4.5 * random.uniform(k));
  lengths.forEach((length, row) => {
    const start = random.below(row, columns);
    const own = Uint32Array.from(
      { length },
      (_, k) => (start + k * Math.max(1, Math.floor(columns / (length + 1)))) % columns,
    );
    indices.set(own.sort(), offsets[row]);
  });
  return { offsets, indices, values };
}

/** A handler's scope (GpuTaskScope) with a check's inputs on the GPU. */
export interface OpenScope<Params extends JsonObject> {
  readonly scope: GpuTaskScope<Params>;
  /** Downloads a matrix, with its padding. */
  read(matrix: string): Promise<Float32Array>;
  close(): void;
}

export async function openScope<Params extends JsonObject>(
  gpu: Gpu,
  params: Params,
  inputs: CheckInputs,
  cancelled = () => false,
): Promise<OpenScope<Params>> {
  const uploads = new Uploads(gpu);
  const matrices = await each(inputs.matrices, (matrix, name) => uploads.matrix(matrix, name));
  const blocks = await each(inputs.blocks, (block, name) => uploads.block(block, name));
  const lists = await each(inputs.lists, (list, name) => uploads.list(list, name));
  const vectors = await each(inputs.vectors, (values, name) => uploads.values(values, name));
  const partitions = new Map(Object.entries(inputs.partitions ?? {}));
  const scope: GpuTaskScope<Params> = {
    gpu,
    params,
    matrixWithHalf: async (name) => uploads.withHalf(given(matrices, name), name),
    hasMatrix: (name) => matrices.has(name),
    matrix: (name) => given(matrices, name),
    matrixOrHalf: (name) => matrices.get(name),
    wire: () => undefined,
    block: (name) => given(blocks, name),
    list: (name) => given(lists, name),
    vector: (name) => given(vectors, name),
    partition: (name) => given(partitions, name),
    has: (name) => [matrices, blocks, lists, vectors, partitions].some((all) => all.has(name)),
    cancelled,
    submitted: () => undefined,
  };
  const read = async (name: string) => {
    const { rows, stride, values } = given(matrices, name);
    const content = new Float32Array(rows * stride);
    await gpu.download(values, content);
    return content;
  };
  const close = () => {
    uploads.destroy();
    for (const { prepared } of blocks.values()) for (const one of prepared.values()) destroyBuffers(one);
  };
  return { scope, read, close };
}

/** Uploads inputs one after the other, by name. */
async function each<Host, OnDevice>(
  inputs: Readonly<Record<string, Host>> = {},
  upload: (input: Host, name: string) => Promise<OnDevice>,
): Promise<Map<string, OnDevice>> {
  const uploaded = new Map<string, OnDevice>();
  for (const [name, input] of Object.entries(inputs)) uploaded.set(name, await upload(input, name));
  return uploaded;
}

/** The buffers of a check's inputs. */
class Uploads {
  readonly #gpu: Gpu;
  readonly #buffers: GPUBuffer[] = [];

  constructor(gpu: Gpu) {
    this.#gpu = gpu;
  }

  async values(source: Float32Array | Int32Array | Uint32Array, name: string): Promise<GPUBuffer> {
    const buffer = await this.#gpu.bufferOf(source, name);
    this.#buffers.push(buffer);
    return buffer;
  }

  async matrix({ values, half, ...shape }: HostMatrix, name: string): Promise<DeviceMatrix> {
    return {
      ...shape,
      values: await this.values(values, name),
      ...(half ? { half: await this.values(half, `${name} half`) } : {}),
    };
  }

  async withHalf(matrix: DeviceMatrix, name: string): Promise<DeviceMatrix> {
    if (matrix.half !== undefined) return matrix;
    matrix.half = await this.#gpu.buffer((matrix.rows + 1) * matrix.stride * 2, `${name} half`);
    this.#buffers.push(matrix.half);
    return matrix;
  }

  async block({ offsets, indices, values }: HostBlock, name: string): Promise<DeviceBlock> {
    return {
      rows: offsets.length - 1,
      ratings: indices.length,
      offsets,
      columns: indices,
      rowPointers: await this.values(offsets, `${name} offsets`),
      indices: await this.values(indices, `${name} indices`),
      values: await this.values(values, `${name} values`),
      prepared: new Map(),
    };
  }

  async list({ rows, columns, values }: HostList, name: string): Promise<DeviceList> {
    return {
      ratings: rows.length,
      rows: await this.values(rows, `${name} rows`),
      columns: await this.values(columns, `${name} columns`),
      values: await this.values(values, `${name} values`),
    };
  }

  destroy(): void {
    for (const buffer of this.#buffers) buffer.destroy();
  }
}

/** Runs a handler on uploaded inputs and frees them. */
export async function runHandler<Params extends JsonObject, Outcome>(
  gpu: Gpu,
  handler: (scope: GpuTaskScope<Params>) => Promise<Outcome>,
  params: NoInfer<Params>,
  inputs: CheckInputs,
  cancelled?: () => boolean,
) {
  const { scope, close } = await openScope(gpu, params, inputs, cancelled);
  try {
    return await handler(scope);
  } finally {
    close();
  }
}

function given<T>(inputs: ReadonlyMap<string, T>, name: string): T {
  const input = inputs.get(name);
  if (input === undefined) throw new Error(`the check has no input ${name}`);
  return input;
}
