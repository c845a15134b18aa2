import { read, write, closeSync, openSync } from 'node:fs';
import { UsageError } from '../../engine/errors.ts';
import { type FileMemory, sharedArray } from '../../engine/partition.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import type { AcquireOptions } from './gpu-info.ts';
import type { GpuHost } from './host.ts';
import { type AcquiredGpu, openAdapter, usedFeatures } from './open-adapter.ts';
import { pacePolls } from './polls.ts';

/** The services of Node. */
const nodeHost: GpuHost = {
  pieces: { write: writePiece, read: readPiece, ended: copiesEnded },
  awaitedValues: (length) => new FreshMemory(length),
  collectGarbage,
};

/** Opens the best adapter. Throws UsageError with the reason when there is none. */
export async function acquireGpu({
  robust = false,
  without = [],
}: AcquireOptions = {}): Promise<AcquiredGpu> {
  const { create, globals } = await loadWebGpu();
  Object.assign(globalThis, globals);
  const toggles = [
    'allow_unsafe_apis',
    'vulkan_enable_f16_on_nvidia',
    ...(robust ? [] : ['disable_robustness', 'disable_workgroup_init']),
  ];
  const instance = create([
    `enable-dawn-features=${toggles.join(',')}`,
    'disable-dawn-features=timestamp_quantization',
  ]);
  const adapter = await instance.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) {
    throw new UsageError('no GPU: WebGPU found no adapter on this machine', {
      advice:
        'Install the driver of the graphics card with its Vulkan part (on Linux also libvulkan1), see ' +
        'factorflow doctor, or use device cpu',
    });
  }
  const acquired = await openAdapter({ instance, adapter, host: nodeHost }, usedFeatures, { without });
  pacePolls(acquired.info.software);
  return acquired;
}

async function loadWebGpu(): Promise<typeof import('webgpu')> {
  try {
    return await import('webgpu');
  } catch (cause) {
    throw new UsageError(
      'no GPU: the package webgpu does not load here ' +
        `(${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)})`,
      {
        advice:
          'There is no build of it for this system, or a library that it needs is missing; use device cpu',
        cause,
      },
    );
  }
}

/** Copies in progress. This set keeps their arrays from being garbage-collected. */
const copies = new Set<Promise<void>>();

/**
 * Writes a piece of data to the memory file that it belongs to, on a thread of Node's pool. `at`: the index
 * of the piece's first byte in all the data.
 */
function writePiece(memory: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  return copy(write, memory, piece, at);
}

/** Reads a piece of data from the memory file that it belongs to; see writePiece. */
function readPiece(memory: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  return copy(read, memory, piece, at);
}

/** Resolves when no copy is in progress. */
async function copiesEnded(): Promise<void> {
  await Promise.allSettled(copies);
}

type Copy = (
  file: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: number,
  done: (error: NodeJS.ErrnoException | null, bytes: number) => void,
) => void;

function copy(how: Copy, { files, pieceBytes }: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  const number = Math.floor(at / pieceBytes);
  const file = files[number % files.length];
  const position = Math.floor(number / files.length) * pieceBytes + (at % pieceBytes);
  const ended = new Promise<void>((resolve, reject) => {
    how(file, piece, 0, piece.length, position, (error, bytes) => {
      if (error !== null) reject(error);
      else if (bytes !== piece.length)
        reject(new Error(`${bytes} of ${piece.length} bytes were copied through a file in memory`));
      else resolve();
    });
  });
  copies.add(ended);
  const gone = () => void copies.delete(ended);
  ended.then(gone, gone);
  return ended;
}

/** Bytes that one thread pre-faults at a time. */
const PIECE_BYTES = 4 << 20;

/** Below this size pre-faulting gains less than the calls cost. */
const LEAST_BYTES = 4 * PIECE_BYTES;

/**
 * New shared memory for values that will arrive later. The system maps a page when it is first written,
 * which takes longer than the copy itself. So where /dev/zero exists (Linux, macOS), pool threads read zeros
 * into the memory while the values are awaited: this maps the pages.
 */
export class FreshMemory {
  readonly values: Float32Array;
  readonly #touched: readonly Promise<void>[];

  constructor(length: number) {
    this.values = sharedArray(Float32Array, length);
    this.#touched = this.values.byteLength < LEAST_BYTES ? [] : touched(this.values);
  }

  /**
   * Resolves when values [from, to) may be written, that is, when the pool threads write no more zeros
   * there.
   */
  async ready(from: number, to: number): Promise<void> {
    const { BYTES_PER_ELEMENT } = this.values;
    await Promise.all(
      this.#touched.slice(
        Math.floor((from * BYTES_PER_ELEMENT) / PIECE_BYTES),
        Math.ceil((to * BYTES_PER_ELEMENT) / PIECE_BYTES),
      ),
    );
  }
}

/**
 * Reads zeros into the memory, so that its pages are mapped. Returns a promise for each piece of PIECE_BYTES,
 * which never rejects: a page that could not be mapped here is mapped when its first value is written.
 */
function touched({ buffer, byteOffset, byteLength }: Float32Array): Promise<void>[] {
  let file: number;
  try {
    file = openSync('/dev/zero', 'r');
  } catch {
    return [];
  }
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  const pieces = Array.from({ length: Math.ceil(byteLength / PIECE_BYTES) }, (_, piece) => {
    const at = piece * PIECE_BYTES;
    return new Promise<void>((resolve) =>
      read(file, bytes, at, Math.min(PIECE_BYTES, byteLength - at), null, () => resolve()),
    );
  });
  void Promise.all(pieces).then(() => closeSync(file));
  return pieces;
}
