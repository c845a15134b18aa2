import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';

export type ParquetWasm = typeof import('parquet-wasm/node');

/** Copies of the package's files that `npm run build` makes: users install no other builds of the package. */
const scriptUrl = new URL('../generated/parquet_wasm.cjs', import.meta.url);
const binaryUrl = new URL('../generated/parquet_wasm_bg.wasm', import.meta.url);
/** Unused instances for the next files, until they are garbage collected. */
const idle: WeakRef<WasmInstance>[] = [];
const IDLE_INSTANCES = 4;
/** Largest memory of an instance that is kept: WebAssembly memory never shrinks. */
const IDLE_BYTES = 96 * 2 ** 20;

/**
 * One instance of the Parquet decoder, with its own memory.
 *
 * A damaged file may cause a trap (a Rust panic). In code that runs off the microtask queue such a trap would
 * end the process and leave the awaited promise pending. So every instance is loaded with a `queueMicrotask`
 * that catches: `guard` then rejects the waiting call, and the instance is never used again. An instance
 * serves one file at a time, so a trap does not affect other files.
 */
export class WasmInstance implements Disposable {
  readonly wasm: ParquetWasm;
  #trap: unknown;
  #trapped = false;
  #rejectWaiting: ((reason: unknown) => void) | undefined;

  private constructor() {
    this.wasm = load((error) => {
      this.#trap = error;
      this.#trapped = true;
      this.#rejectWaiting?.(error);
    });
  }

  /** An idle instance, or a new one (10 to 30 ms). */
  static take(): WasmInstance {
    while (idle.length > 0) {
      const instance = idle.pop()?.deref();
      if (instance !== undefined) return instance;
    }
    return new WasmInstance();
  }

  /** Awaits a promise of the decoder, or throws its trap. One call at a time. */
  async guard<T>(start: () => Promise<T>): Promise<T> {
    if (this.#trapped) throw this.#trap;
    const trap = new Promise<never>((_, reject) => {
      this.#rejectWaiting = reject;
    });
    try {
      return await Promise.race([start(), trap]);
    } catch (error) {
      this.#noteTrap(error);
      throw error;
    } finally {
      this.#rejectWaiting = undefined;
    }
  }

  /** Guards a synchronous call. */
  guardSync<T>(call: () => T): T {
    if (this.#trapped) throw this.#trap;
    try {
      return call();
    } catch (error) {
      this.#noteTrap(error);
      throw error;
    }
  }

  /** Abandons the instance, since a call may still be running inside. */
  discard(): void {
    this.#trapped = true;
    this.#trap ??= new Error('this decoder was discarded');
  }

  [Symbol.dispose](): void {
    if (
      this.#trapped ||
      idle.length >= IDLE_INSTANCES ||
      this.wasm.wasmMemory().buffer.byteLength > IDLE_BYTES
    )
      return;
    idle.push(new WeakRef(this));
  }

  #noteTrap(error: unknown): void {
    if (!isTrap(error)) return;
    this.#trap = error;
    this.#trapped = true;
  }
}

/** True if the decoder crashed and is unusable; false if it refused the data. */
export function isTrap(error: unknown): boolean {
  return error instanceof Error && (error.name === 'RuntimeError' || error instanceof RangeError);
}

let source: string | undefined;
let compiled: WebAssembly.Module | undefined;

/**
 * A stand-in for the global WebAssembly, which the package uses: it compiles the module only once in a
 * thread. V8 shares compiled code between threads, but must read all bytes to find it.
 */
const assembly = Object.create(WebAssembly, {
  Module: {
    value: function (bytes: BufferSource) {
      return (compiled ??= new WebAssembly.Module(bytes));
    },
  },
}) as typeof WebAssembly;

/** A stand-in for `require`, which the package calls only for `fs`, to read its WebAssembly. */
const requireFs = () => ({
  readFileSync: () => (compiled === undefined ? readFileSync(binaryUrl) : new Uint8Array(0)),
});

/** Runs the package's CommonJS file again, with new variables and memory. */
function load(onTrap: (error: unknown) => void): ParquetWasm {
  source ??= readFileSync(scriptUrl, 'utf8');
  const parameters = ['exports', 'require', 'module', '__dirname', 'queueMicrotask', 'WebAssembly'];
  const module: { exports: unknown } = { exports: {} };
  const guardedQueue = (callback: () => void) =>
    queueMicrotask(() => {
      try {
        callback();
      } catch (error) {
        onTrap(error);
      }
    });
  compileFunction(source, parameters, { filename: fileURLToPath(scriptUrl) })(
    module.exports,
    requireFs,
    module,
    '.',
    guardedQueue,
    assembly,
  );
  return module.exports as ParquetWasm;
}
