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

/** A matrix of a check on the host: row-major values of rows x stride, padding 0. */
export interface HostMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  readonly values: Float32Array;
  /** Its half mirror, two numbers in each. */
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
 * Inputs and outputs of a handler, by the task's names. A half mirror that a handler requests is made of
 * zeros.
 */
export interface CheckInputs {
  readonly matrices?: Readonly<Record<string, HostMatrix>>;
  readonly blocks?: Readonly<Record<string, HostBlock>>;
  readonly lists?: Readonly<Record<string, HostList>>;
  readonly vectors?: Readonly<Record<string, Float32Array | Uint32Array>>;
  readonly partitions?: Readonly<Record<string, Partition>>;
}

/** A matrix with the elements that `element` gives. */
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

/** A matrix of uniform elements in ±1 / √columns: products of two rows are at most about 1 / 3. */
export function randomMatrix(rows: number, columns: number, seed: number): HostMatrix {
  const random = new CounterRandom(seed);
  return hostMatrix(
    rows,
    columns,
    (row, k) => (2 * random.uniform(row * columns + k) - 1) / Math.sqrt(columns),
  );
}

/** The matrix of numbers that float16 holds, with its half mirror. */
export function mirrored({ values, ...shape }: HostMatrix): HostMatrix {
  const bits = new Uint16Array(values.length + shape.stride);
  values.forEach((value, at) => (bits[at] = halfBits(value)));
  return { ...shape, values: values.map(roundToHalf), half: new Uint32Array(bits.buffer) };
}

/**
 * Rows of the given lengths with ratings 0.5 .. 5; columns ascend, and are distinct as long as they suffice.
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

/** A task's scope over uploaded inputs. */
export interface OpenScope<Params extends JsonObject> {
  readonly scope: GpuTaskScope<Params>;
  /** Current content of a matrix, with its padding. */
  read(matrix: string): Promise<Float32Array>;
  close(): void;
}

export async function openScope<Params extends JsonObject>(
  gpu: Gpu,
  params: Params,
  inputs: CheckInputs,
  cancelled = () => false,
): Promise<OpenScope<Params>> {
  const made: GPUBuffer[] = [];
  const upload = async (source: Float32Array | Int32Array | Uint32Array, name: string) => {
    const buffer = await gpu.bufferOf(source, name);
    made.push(buffer);
    return buffer;
  };
  const matrices = new Map<string, DeviceMatrix>();
  for (const [name, { values, half, ...shape }] of Object.entries(inputs.matrices ?? {})) {
    matrices.set(name, {
      ...shape,
      values: await upload(values, name),
      ...(half ? { half: await upload(half, `${name} half`) } : {}),
    });
  }
  const blocks = new Map<string, DeviceBlock>();
  for (const [name, { offsets, indices, values }] of Object.entries(inputs.blocks ?? {})) {
    const [rowPointers, columns, ratings] = [
      await upload(offsets, `${name} offsets`),
      await upload(indices, `${name} indices`),
      await upload(values, `${name} values`),
    ];
    blocks.set(name, {
      rows: offsets.length - 1,
      ratings: indices.length,
      offsets,
      columns: indices,
      rowPointers,
      indices: columns,
      values: ratings,
      prepared: new Map(),
    });
  }
  const lists = new Map<string, DeviceList>();
  for (const [name, { rows, columns, values }] of Object.entries(inputs.lists ?? {})) {
    lists.set(name, {
      ratings: rows.length,
      rows: await upload(rows, `${name} rows`),
      columns: await upload(columns, `${name} columns`),
      values: await upload(values, `${name} values`),
    });
  }
  const vectors = new Map<string, GPUBuffer>();
  for (const [name, values] of Object.entries(inputs.vectors ?? {}))
    vectors.set(name, await upload(values, name));
  const partitions = new Map(Object.entries(inputs.partitions ?? {}));
  const scope: GpuTaskScope<Params> = {
    gpu,
    params,
    matrixWithHalf: async (name) => {
      const matrix = given(matrices, name);
      if (matrix.half === undefined)
        made.push((matrix.half = await gpu.buffer((matrix.rows + 1) * matrix.stride * 2, `${name} half`)));
      return matrix;
    },
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
    for (const buffer of made) buffer.destroy();
    for (const { prepared } of blocks.values()) for (const one of prepared.values()) destroyBuffers(one);
  };
  return { scope, read, close };
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
