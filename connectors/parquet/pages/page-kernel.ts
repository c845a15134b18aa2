import { type PageFunctions, pages } from '../generated/pages-wasm.ts';

const WASM_PAGE = 1 << 16;
/** Number of bytes after a reserved range that a kernel may read, since it reads words of 8 bytes. */
const BEHIND = 16;
/** Largest memory that is kept for reuse: WebAssembly memory never shrinks. */
const KEPT_BYTES = 8 << 20;

let module: WebAssembly.Module | undefined;
/**
 * A kernel that is not in use; the thread's next reader takes it. A new memory for each reader would be
 * garbage that takes longer to collect than reading the pages.
 */
const idle: PageKernel[] = [];

/** The WebAssembly functions that read pages, with their own memory. One reader uses it at a time. */
export class PageKernel {
  readonly functions: PageFunctions;
  readonly #memory = new WebAssembly.Memory({ initial: 1 });
  #end = BEHIND;

  private constructor() {
    module ??= new WebAssembly.Module(Buffer.from(pages, 'base64'));
    this.functions = new WebAssembly.Instance(module, { env: { memory: this.#memory } })
      .exports as unknown as PageFunctions;
  }

  static take(): PageKernel {
    return idle.pop() ?? new PageKernel();
  }

  /** The memory, valid until the next `reserve`. */
  get buffer(): ArrayBuffer {
    return this.#memory.buffer;
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#memory.buffer);
  }

  /**
   * Reserves `bytes` bytes until `clear`, and returns their address. Throws RangeError if there is no memory.
   */
  reserve(bytes: number): number {
    const at = this.#end;
    const end = Math.ceil((at + bytes) / BEHIND) * BEHIND;
    const missing = end + BEHIND - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / WASM_PAGE));
    this.#end = end;
    return at;
  }

  /** Releases all reserved memory. */
  clear(): void {
    this.#end = BEHIND;
  }

  /** Releases the kernel to the next reader. */
  giveBack(): void {
    this.clear();
    if (idle.length === 0 && this.#memory.buffer.byteLength <= KEPT_BYTES) idle.push(this);
  }
}
