import { bytesOfBase64 } from '../../../engine/base64.ts';
import { loading, type LoadingKernels } from '../../generated/loading-wasm.ts';

const WASM_PAGE = 1 << 16;
/** Alignment of arrays in bytes. */
const ALIGNMENT = 64;
/** A larger memory is dropped after its use, since WebAssembly memory never shrinks. */
const KEPT_BYTES = 32 << 20;

let module: WebAssembly.Module | undefined;
let kept: LoadingMemory | undefined;

/**
 * The loading kernels, with a memory that only this thread uses. Tasks copy ratings into it to sort them,
 * because it stays in the core's cache. The kernels are WebAssembly since V8 compiles it once for all
 * threads, whereas each thread would interpret and compile JavaScript loops by itself.
 */
export class LoadingMemory {
  readonly kernels: LoadingKernels;
  readonly #memory = new WebAssembly.Memory({ initial: 1 });

  private constructor() {
    module ??= new WebAssembly.Module(bytesOfBase64(loading));
    this.kernels = new WebAssembly.Instance(module, { env: { memory: this.#memory } })
      .exports as unknown as LoadingKernels;
  }

  /** The memory of this thread, which one task uses at a time. */
  static own(): LoadingMemory {
    return (kept ??= new LoadingMemory());
  }

  /**
   * Places arrays of the given lengths (in words of 4 bytes) in the memory, over earlier arrays. Returns
   * their addresses. Throws RangeError if memory does not suffice.
   */
  layOut<const Lengths extends readonly number[]>(
    ...lengths: Lengths
  ): { readonly [K in keyof Lengths]: number } {
    let end = ALIGNMENT;
    const addresses = lengths.map((length) => {
      const at = end;
      end += Math.ceil((4 * length) / ALIGNMENT) * ALIGNMENT;
      return at;
    });
    const missing = end - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / WASM_PAGE));
    if (end > KEPT_BYTES && kept === this) kept = undefined;
    return addresses as unknown as { readonly [K in keyof Lengths]: number };
  }

  /** A view of u32 in the memory, valid until the next `layOut`. */
  words(address: number, length: number): Uint32Array {
    return new Uint32Array(this.#memory.buffer, address, length);
  }

  floats(address: number, length: number): Float32Array {
    return new Float32Array(this.#memory.buffer, address, length);
  }

  doubles(address: number, length: number): Float64Array {
    return new Float64Array(this.#memory.buffer, address, length);
  }
}
