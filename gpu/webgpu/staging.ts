import type { FileMemory } from '../../engine/partition.ts';
import { PIECE_BYTES } from '../exchange/memory-files.ts';
import { readPiece, writePiece } from '../exchange/copy-files.ts';
import type { TransferCounters } from './counters.ts';

/** Large enough for the full speed of the bus, small enough that filling one overlaps with copying another. */
export const STAGING_BYTES = 16 << 20;

/** The size of the buffers, and the number of them for each direction. */
export interface StagingSize {
  readonly bytes: number;
  readonly buffers: number;
}

/** For data that come and go as a whole. */
export const BULK: StagingSize = { bytes: STAGING_BYTES, buffers: 4 };

/**
 * For exchanges with other GPUs. Small buffers stay in the processor's caches on the way; there are many, since a copy waits in the queue behind the kernels that were
 * submitted before it, and keeps its buffer as long.
 */
export const EXCHANGE: StagingSize = { bytes: PIECE_BYTES, buffers: 96 };

/** Pieces that an upload reads from files at once. */
const READS = 16;

/** Bytes of a buffer, read in whole units of no more than a staging buffer. */
export interface DownloadRange {
  readonly offset: number;
  readonly bytes: number;
  readonly unit: number;
}

/** Any view of host memory, shared or not. */
export type HostBytes = ArrayBufferView<ArrayBufferLike>;

/**
 * Moves bytes between host memory and GPU buffers through a few mapped buffers that are reused: new ones would cost page
 * faults each time. Sizes and offsets are multiples of 4.
 */
export class Staging {
  readonly #device: GPUDevice;
  readonly #counters: TransferCounters;
  readonly #bytes: number;
  readonly #up: StagingPool;
  readonly #down: StagingPool;
  /** The last download's end, or what stands for it while there was none. */
  #copied: Promise<void> = Promise.resolve();

  constructor(device: GPUDevice, counters: TransferCounters, size = BULK) {
    this.#device = device;
    this.#counters = counters;
    this.#bytes = size.bytes;
    this.#up = new StagingPool(device, GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC, 'upload', size);
    this.#down = new StagingPool(device, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST, 'readback', size);
  }

  /** Copies `source` to `target` from byte `offset` on. Work submitted later sees the bytes, though the copy may still be running. */
  async upload(target: GPUBuffer, source: HostBytes, offset = 0): Promise<void> {
    for (let at = 0; at < source.byteLength; at += this.#bytes) {
      const bytes = Math.min(this.#bytes, source.byteLength - at);
      await this.uploadFilled(target, offset + at, bytes, (staged) => new Uint8Array(staged).set(new Uint8Array(source.buffer, source.byteOffset + at, bytes)));
    }
  }

  /** Uploads at most as many bytes as a staging buffer has, that `fill` writes; the memory that it gets holds bytes of earlier uploads. */
  async uploadFilled(target: GPUBuffer, offset: number, bytes: number, fill: (staged: ArrayBuffer) => void): Promise<void> {
    const staging = await this.#up.take();
    // The mapped range may be longer than the copy: buffers need whole words.
    if (staging.mapState !== 'mapped') await staging.mapAsync(GPUMapMode.WRITE, 0, this.#bytes);
    fill(staging.getMappedRange(0, this.#bytes));
    staging.unmap();
    this.#copy(staging, 0, target, offset, bytes);
    this.#counters.up(bytes);
    this.#up.give(staging, staging.mapAsync(GPUMapMode.WRITE, 0, this.#bytes));
  }

  /** Fills `target` with the bytes of `source` from `offset` on; see downloadPieces. */
  download(source: GPUBuffer, target: HostBytes, offset = 0, submitted?: () => void): Promise<void> {
    const take = (piece: ArrayBuffer, at: number) => new Uint8Array(target.buffer, target.byteOffset + at, piece.byteLength).set(new Uint8Array(piece));
    return this.downloadPieces(source, { offset, bytes: target.byteLength, unit: 4 }, take, submitted);
  }

  /**
   * Hands the bytes of `source` from `offset` on to `take`, in pieces of whole units, each with its place; a piece is gone when `take` returns. Calls `submitted` when the copies are submitted, resolves when
   * they have ended. Downloads end one behind the other, and the thread turns to other work between: copies of many that the GPU tells of at once would hold up the first of them.
   */
  async downloadPieces(source: GPUBuffer, { offset, bytes, unit }: DownloadRange, take: (piece: ArrayBuffer, at: number) => void, submitted?: () => void): Promise<void> {
    const parts: Promise<void>[] = [];
    const before = this.#copied;
    const end = Promise.withResolvers<void>();
    this.#copied = end.promise;
    const step = Math.floor(this.#bytes / unit) * unit;
    try {
      for (let at = 0; at < bytes; at += step) {
        const length = Math.min(step, bytes - at);
        const staging = await this.#down.take();
        this.#copy(source, offset + at, staging, 0, length);
        this.#counters.down(length);
        const part = staging.mapAsync(GPUMapMode.READ, 0, length).then(() => before).then(() => {
          take(staging.getMappedRange(0, length), at);
          staging.unmap();
        });
        this.#down.give(staging, part);
        parts.push(part);
      }
      submitted?.();
      await Promise.all(parts);
    } finally {
      setImmediate(end.resolve);
    }
  }

  /** Copies so many bytes to files in memory. Threads of the system write the pieces, so that several of them, and of several downloads, go at once. */
  async downloadToFiles(source: GPUBuffer, target: FileMemory, bytes: number, submitted?: () => void): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += target.pieceBytes) {
      const length = Math.min(target.pieceBytes, bytes - at);
      const staging = await this.#down.take();
      this.#copy(source, at, staging, 0, length);
      this.#counters.down(length);
      const part = staging.mapAsync(GPUMapMode.READ, 0, length).then(async () => {
        await writePiece(target, new Uint8Array(staging.getMappedRange(0, length)), at);
        staging.unmap();
      });
      this.#down.give(staging, part);
      parts.push(part);
    }
    submitted?.();
    await allEnded(parts);
  }

  /** Copies so many bytes of files in memory to `target` from byte `offset` on; as upload otherwise. */
  async uploadFromFiles(target: GPUBuffer, source: FileMemory, bytes: number, offset = 0): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += source.pieceBytes) {
      const length = Math.min(source.pieceBytes, bytes - at);
      if (parts.length >= READS) await parts[parts.length - READS];
      const staging = await this.#up.take();
      const part = this.#fillFrom(source, staging, at, length).then(() => this.#copy(staging, 0, target, offset + at, length));
      this.#counters.up(length);
      this.#up.give(staging, part.then(() => staging.mapAsync(GPUMapMode.WRITE, 0, this.#bytes)));
      parts.push(part);
    }
    await allEnded(parts);
  }

  async #fillFrom(source: FileMemory, staging: GPUBuffer, at: number, length: number): Promise<void> {
    if (staging.mapState !== 'mapped') await staging.mapAsync(GPUMapMode.WRITE, 0, this.#bytes);
    await readPiece(source, new Uint8Array(staging.getMappedRange(0, this.#bytes), 0, length), at);
    staging.unmap();
  }

  destroy(): void {
    this.#up.destroy();
    this.#down.destroy();
  }

  #copy(from: GPUBuffer, fromOffset: number, to: GPUBuffer, toOffset: number, bytes: number): void {
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
    this.#device.queue.submit([encoder.finish()]);
  }
}

/** Resolves when all have ended; throws the first failure then. */
async function allEnded(parts: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

class StagingPool {
  readonly #device: GPUDevice;
  readonly #usage: number;
  readonly #label: string;
  readonly #size: StagingSize;
  readonly #all: GPUBuffer[] = [];
  readonly #ready: { readonly buffer: GPUBuffer; readonly when: Promise<unknown>; done: boolean }[] = [];

  constructor(device: GPUDevice, usage: number, label: string, size: StagingSize) {
    this.#size = size;
    this.#device = device;
    this.#usage = usage;
    this.#label = label;
  }

  /** A buffer that is free; while there may be more, a new one rather than one to wait for. */
  async take(): Promise<GPUBuffer> {
    const free = this.#ready.findIndex(({ done }) => done);
    const [next] = free < 0 && this.#all.length < this.#size.buffers ? [] : this.#ready.splice(Math.max(0, free), 1);
    if (next !== undefined) {
      await next.when;
      return next.buffer;
    }
    if (this.#all.length >= this.#size.buffers) throw new Error(`staging pool ${this.#label}: all buffers are taken and none was given back`);
    const buffer = this.#device.createBuffer({ label: this.#label, size: this.#size.bytes, usage: this.#usage, mappedAtCreation: (this.#usage & GPUBufferUsage.MAP_WRITE) !== 0 });
    this.#all.push(buffer);
    return buffer;
  }

  /** Gives a buffer back; it can be taken again once `when` has resolved. */
  give(buffer: GPUBuffer, when: Promise<unknown>): void {
    const ready = { buffer, when, done: false };
    // The next taker sees the failure.
    when.then(() => (ready.done = true)).catch(() => undefined);
    this.#ready.push(ready);
  }

  destroy(): void {
    for (const buffer of this.#all) buffer.destroy();
  }
}
