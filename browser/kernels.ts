import { fastestBuild, kernelBytes, type KernelBuild } from '../cpu/compile-kernels.ts';
import { UsageError } from '../engine/errors.ts';

/** Id of the section of a WebAssembly module that has its imports. */
const IMPORTS = 2;
const MEMORY = 2;
/** Flags of an imported memory: it has a maximum, it is shared. */
const [HAS_MAXIMUM, SHARED] = [1, 2];

/**
 * The kernels as a module that imports a shared memory (`shared`) or an ordinary one: only pages that are
 * cross-origin isolated can share memory among threads. The code is the same for both. Throws UsageError if
 * the browser has no WebAssembly SIMD.
 */
export async function compilePageKernels(shared: boolean): Promise<{
  readonly build: KernelBuild;
  readonly compiled: WebAssembly.Module;
}> {
  const build = typeof WebAssembly === 'undefined' ? undefined : fastestBuild();
  if (build === undefined)
    throw new UsageError('this browser has no WebAssembly SIMD, which FactorFlow computes with', {
      phase: 'open',
      advice: 'Use Chrome 91, Firefox 89, Safari 16.4 or newer',
    });
  const bytes = kernelBytes(build);
  return { build, compiled: await WebAssembly.compile(shared ? bytes : withOwnMemory(bytes)) };
}

/**
 * Changes the module's memory import from shared to ordinary: one flag in the section of imports.
 *
 *     section: id, size, count, then for each import: module name, field name, kind, type
 *     type of a memory: flags, initial pages[, maximum pages]
 */
export function withOwnMemory(module: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const numbers = new Numbers(module, 8);
  for (;;) {
    const id = numbers.next();
    const size = numbers.next();
    if (id === IMPORTS) break;
    numbers.skip(size);
  }
  const count = numbers.next();
  numbers.skip(numbers.next());
  numbers.skip(numbers.next());
  const kind = numbers.next();
  // The memory is the only import, as loadKernels passes it.
  if (count !== 1 || kind !== MEMORY || module[numbers.at] !== (HAS_MAXIMUM | SHARED))
    throw new Error('the kernels must import one shared memory and nothing else');
  const own = module.slice();
  own[numbers.at] = HAS_MAXIMUM;
  return own;
}

/** Reads numbers in LEB128. */
class Numbers {
  at: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at: number) {
    [this.#bytes, this.at] = [bytes, at];
  }

  next(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  skip(bytes: number): void {
    this.at += bytes;
  }
}
