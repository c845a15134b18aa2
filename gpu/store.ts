import { CapacityError } from '../engine/errors.ts';
import type { MatrixShape, Partition } from '../engine/partition.ts';
import { downloadRows, uploadRows, transposedValues } from './copies/matrix-rows.ts';
import { addPacked, addHalf } from './copies/to-half.ts';
import {
  destroyBuffers,
  type DeviceBlock,
  type DeviceList,
  type DeviceMatrix,
  strideOf,
  vectorLayouts,
  type WireRows,
} from './device/resources.ts';
import type { Gpu } from './webgpu/gpu.ts';

/** A partition in the store; its buffers are allocated when a task first names it. */
interface Entry {
  /** The partition in host memory; undefined once a matrix is on the device. */
  partition?: Partition;
  /** The shape of a matrix that was allocated, not put. */
  readonly shape?: Omit<MatrixShape, 'stride'>;
  matrix?: DeviceMatrix;
  block?: DeviceBlock;
  list?: DeviceList;
  vector?: GPUBuffer;
}

/** The partitions of one GPU by key, in the thread that owns the GPU. */
export class GpuStore {
  readonly #gpu: Gpu;
  readonly #pool: BufferPool;
  readonly #entries = new Map<string, Entry>();

  constructor(gpu: Gpu) {
    this.#gpu = gpu;
    this.#pool = new BufferPool(gpu);
  }

  put(key: string, partition: Partition): void {
    this.release(key);
    this.#entries.set(key, { partition });
  }

  allocate(key: string, shape: Omit<MatrixShape, 'stride'>): void {
    this.release(key);
    this.#entries.set(key, { shape });
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  get(key: string): Entry {
    const entry = this.#entries.get(key);
    if (entry === undefined) throw new Error(`partition ${key} is not on this GPU`);
    return entry;
  }

  /** Allocates and fills the buffers of a partition. Throws CapacityError. */
  async prepare(key: string): Promise<Entry> {
    const entry = this.get(key);
    const { partition, shape } = entry;
    if (shape !== undefined) entry.matrix ??= await this.#matrix(key, shape);
    else if (partition?.layout === 'factors') {
      entry.matrix ??= await this.#uploadMatrix(key, partition);
      entry.partition = undefined;
    } else if (partition?.layout === 'rating-block') entry.block ??= await this.#uploadBlock(key, partition);
    else if (partition?.layout === 'rating-list') entry.list ??= await this.#uploadList(key, partition);
    else if (partition !== undefined && vectorLayouts.includes(partition.layout))
      entry.vector ??= await this.#uploadVector(key, partition);
    return entry;
  }

  /**
   * A matrix with its half mirror, a float16 copy. A missing mirror is allocated, and computed from the
   * matrix unless the current task will write it (`written`).
   */
  async withHalf(key: string, written: boolean): Promise<DeviceMatrix> {
    const { matrix, shape } = await this.prepare(key);
    if (matrix === undefined) throw new Error(`partition ${key} is not a matrix`);
    if (matrix.half !== undefined) return matrix;
    matrix.half = await this.#pool.take(
      (matrix.rows + 1) * matrix.stride * 2,
      `${key} half`,
      shape?.contents,
    );
    if (!written) {
      const pass = this.#gpu.pass('half mirror');
      await addHalf(this.#gpu, pass, matrix);
      await pass.submit();
    }
    return matrix;
  }

  /**
   * The partition in host memory, with the device's content. A matrix gets new host memory without padding; a
   * vector gets the host memory from which it was put. `submitted` is called when all copies of a matrix are
   * submitted to the GPU.
   */
  async fetch(key: string, submitted?: () => void): Promise<Partition> {
    const { matrix, vector, partition } = await this.prepare(key);
    if (matrix?.halfOnly) throw new Error(`partition ${key} has its half mirror alone`);
    if (matrix !== undefined)
      return {
        layout: 'factors',
        rows: matrix.rows,
        columns: { values: await downloadRows(this.#gpu, matrix, submitted) },
      };
    if (partition === undefined) throw new Error(`partition ${key} has no host form`);
    if (vector !== undefined && partition.columns.values.length > 0)
      await this.#gpu.download(vector, partition.columns.values);
    return partition;
  }

  /**
   * Copies the rows of a matrix for another device: with padding, as float32 numbers, or the half mirror as
   * float16 or 8-bit numbers. Returns the number of rows.
   */
  async fetchWire(key: string, into: WireRows, submitted?: () => void): Promise<number> {
    const { matrix } = await this.prepare(key);
    if (matrix === undefined) throw new Error(`partition ${key} is not a matrix`);
    if (into.form === 'i8') return this.#sendPacked(await this.withHalf(key, false), into, submitted);
    const source = into.form === 'f16' ? (await this.withHalf(key, false)).half : matrix.values;
    if (into.bytes > 0) await this.#gpu.sendOut(source as GPUBuffer, into, submitted);
    return matrix.rows;
  }

  async #sendPacked(matrix: DeviceMatrix, into: WireRows, submitted?: () => void): Promise<number> {
    const pass = this.#gpu.pass('rows in 8 bits');
    const packed = await addPacked(this.#gpu, pass, matrix);
    await Promise.all([pass.submit(), this.#gpu.sendOut(packed, into, submitted)]);
    return matrix.rows;
  }

  release(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const { shape, matrix, block, list, vector } = entry;
    for (const buffer of [matrix?.values, matrix?.half, vector])
      if (buffer !== undefined) this.#pool.give(buffer, shape?.contents);
    destroyBuffers(list);
    if (block === undefined) return;
    for (const buffer of [block.rowPointers, block.indices, block.values]) buffer.destroy();
    for (const prepared of block.prepared.values()) destroyBuffers(prepared);
  }

  /**
   * Frees the host memory of an uploaded block of ratings, including its column indices. So when lists of its
   * rows are made later, long rows are not cut by column.
   */
  leave(key: string): void {
    const entry = this.get(key);
    if (entry.block === undefined) return;
    entry.block = { ...entry.block, columns: undefined };
    entry.partition = undefined;
  }

  /** Frees pooled buffers. */
  trim(): void {
    this.#pool.trim();
  }

  async #matrix(
    key: string,
    { rows, columns, contents, halfOnly }: Omit<MatrixShape, 'stride'>,
  ): Promise<DeviceMatrix> {
    const stride = strideOf(columns);
    if (halfOnly)
      return {
        rows,
        columns,
        stride,
        values: await this.#pool.take(0, key),
        half: await this.#pool.take((rows + 1) * stride * 2, `${key} half`),
        halfOnly,
      };
    return { rows, columns, stride, values: await this.#pool.take(rows * stride * 4, key, contents) };
  }

  async #uploadMatrix(key: string, { rows, columns, width }: Partition): Promise<DeviceMatrix> {
    const values = columns.values as Float32Array;
    const matrix = await this.#matrix(key, {
      rows,
      columns: width ?? (rows === 0 ? 0 : values.length / rows),
    });
    await uploadRows(this.#gpu, matrix, values);
    return matrix;
  }

  /**
   * Prepares a block of ratings that is the transpose of another one. The GPU computes its values from the
   * other block's values, so they are not uploaded.
   */
  async prepareTransposed(key: string, of: string): Promise<void> {
    const entry = this.get(key);
    const { block } = await this.prepare(of);
    if (entry.partition?.layout === 'rating-block')
      entry.block ??= await this.#uploadBlock(key, entry.partition, block);
  }

  /** `other`: a block on this device whose transpose this block is, if there is one. */
  async #uploadBlock(key: string, { rows, columns }: Partition, other?: DeviceBlock): Promise<DeviceBlock> {
    const offsets = columns.offsets as Int32Array;
    const ratings = columns.indices.length;
    const [rowPointers, indices] = [
      await this.#gpu.bufferOf(offsets, `${key} offsets`),
      await this.#gpu.bufferOf(columns.indices, `${key} indices`),
    ];
    return {
      rows,
      ratings,
      offsets,
      columns: columns.indices as Uint32Array,
      rowPointers,
      indices,
      ...(other?.ratings === ratings
        ? await transposedValues(this.#gpu, { rows, ratings, rowPointers, indices }, other, `${key} values`)
        : { values: await this.#gpu.bufferOf(columns.values, `${key} values`) }),
      prepared: new Map(),
    };
  }

  async #uploadList(key: string, { columns: { rows, columns, values } }: Partition): Promise<DeviceList> {
    return {
      ratings: rows.length,
      rows: await this.#gpu.bufferOf(rows, `${key} rows`),
      columns: await this.#gpu.bufferOf(columns, `${key} columns`),
      values: await this.#gpu.bufferOf(values, `${key} values`),
    };
  }

  async #uploadVector(key: string, { columns: { values } }: Partition): Promise<GPUBuffer> {
    const buffer = await this.#pool.take(values.byteLength, key);
    await this.#gpu.upload(buffer, values);
    return buffer;
  }
}

/** The parts of an opened GPU that the pool uses. */
type PoolGpu = Pick<Gpu, 'device' | 'info' | 'buffer'> & Partial<Pick<Gpu, 'hasRoomFor'>>;

/**
 * A free buffer is used for a request if it is large enough, and larger by at most 1/32 of the requested
 * size. A buffer that is smaller by at most 1/32 may be destroyed (see #nearest).
 */
const NEAR = 32;

/**
 * Freed GPU buffers, kept for later requests of about the same size: each half-iteration allocates new
 * factors and frees old ones. A buffer is zeroed when it is freed, while no task waits for it, unless its
 * next owner will probably overwrite all of it.
 */
export class BufferPool {
  readonly #gpu: PoolGpu;
  readonly #free = new Map<number, GPUBuffer[]>();
  /** The free buffers that were not zeroed. */
  readonly #written = new Set<GPUBuffer>();

  constructor(gpu: PoolGpu) {
    this.#gpu = gpu;
  }

  /**
   * Takes a free buffer or creates one. Throws CapacityError when memory does not suffice even after all free
   * buffers are destroyed.
   */
  async take(bytes: number, label: string, contents: MatrixShape['contents'] = 'zeros'): Promise<GPUBuffer> {
    const size = this.#sizeOf(bytes);
    const kept = this.#nearest(size);
    const fitting = kept.findLastIndex((buffer) => this.#written.has(buffer) === (contents === 'any'));
    // If no buffer has the wanted contents, the index is -1, and `splice` takes the last one.
    const [buffer] = kept.splice(fitting, 1);
    if (buffer === undefined) return this.#create(size, label);
    if (this.#written.delete(buffer) && contents === 'zeros') this.#clear(buffer);
    buffer.label = label;
    return buffer;
  }

  /**
   * The free buffers of the smallest near size that is at least `size`. If there are none, one slightly
   * smaller buffer is destroyed: otherwise partitions that differ in a few rows would each leave a buffer in
   * the pool.
   */
  #nearest(size: number): GPUBuffer[] {
    const near = [...this.#free]
      .filter(([own, kept]) => kept.length > 0 && Math.abs(own - size) <= size / NEAR)
      .sort(([left], [right]) => left - right);
    const fitting = near.find(([own]) => own >= size);
    if (fitting !== undefined) return fitting[1];
    const smaller = near.at(-1)?.[1].pop();
    if (smaller !== undefined) {
      this.#written.delete(smaller);
      smaller.destroy();
    }
    return [];
  }

  /** Keeps a buffer. `contents` is what its next owner probably needs. */
  give(buffer: GPUBuffer, contents: MatrixShape['contents'] = 'zeros'): void {
    if (contents === 'zeros') this.#clear(buffer);
    else this.#written.add(buffer);
    const kept = this.#free.get(buffer.size);
    if (kept === undefined) this.#free.set(buffer.size, [buffer]);
    else kept.push(buffer);
  }

  trim(): void {
    for (const buffers of this.#free.values()) for (const buffer of buffers) buffer.destroy();
    this.#free.clear();
    this.#written.clear();
  }

  #clear(buffer: GPUBuffer): void {
    const encoder = this.#gpu.device.createCommandEncoder({ label: `clear ${buffer.label}` });
    encoder.clearBuffer(buffer);
    this.#gpu.device.queue.submit([encoder.finish()]);
  }

  async #create(bytes: number, label: string): Promise<GPUBuffer> {
    if (this.#gpu.hasRoomFor?.(bytes) === false) this.trim();
    try {
      return await this.#gpu.buffer(bytes, label);
    } catch (error) {
      if (!(error instanceof CapacityError) || this.#free.size === 0) throw error;
      this.trim();
      return this.#gpu.buffer(bytes, label);
    }
  }

  /**
   * Rounds a size up to one of 64 sizes between two powers of two, unless that exceeds the device's limits.
   * So partitions of nearly the same size can use the same buffers.
   */
  #sizeOf(bytes: number): number {
    const { bufferBytes, bindingBytes } = this.#gpu.info.limits;
    const step = Math.max(16, 2 ** Math.floor(Math.log2(Math.max(1, bytes)) - 6));
    const size = Math.max(16, Math.ceil(bytes / step) * step);
    return size <= Math.min(bufferBytes, bindingBytes) ? size : Math.ceil(bytes / 16) * 16;
  }
}
