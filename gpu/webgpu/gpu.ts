import { CapacityError, DeviceLostError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { MemoryMeter } from '../../engine/run/memory-meter.ts';
import type { WireRows } from '../device/resources.ts';
import { compileKernel } from './compile-kernel.ts';
import type { GpuInfo } from './gpu-info.ts';
import type { GpuHost } from './host.ts';
import { admits, type CompiledKernel, type KernelDescriptor, type KernelParams, kernelOf } from './kernel.ts';
import { type AcquiredGpu, releaseGpu } from './open-adapter.ts';
import { BindGroups, PassBuffers, KernelClock, Pass, type Turn, Journal } from './pass.ts';
import { hurryPolls } from './polls.ts';
import {
  TransferCounters,
  type DownloadRange,
  EXCHANGE,
  type HostBytes,
  type PieceTaker,
  Staging,
} from './staging.ts';

/**
 * Dummy work that keeps the GPU's clock high (IdleSpin): each thread does `rounds`
 * multiplications.
 */
export const spinKernel = kernelOf()({
  name: 'spin',
  writes: { result: 'array<u32>' },
  uniforms: { rounds: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/** One opened GPU: buffers, compiled kernels, transfers. Made and used in one thread. */
export class Gpu {
  readonly info: GpuInfo;
  readonly device: GPUDevice;
  readonly host: GpuHost;
  readonly counters = new TransferCounters();
  readonly clock = new KernelClock();
  readonly journal = new Journal();
  readonly passBuffers: PassBuffers;
  readonly bindGroups: BindGroups;
  /** The request that has the turn, so that new passes belong to it (see Turns). */
  turn: Turn = { clocked: false };
  /** True where keepAwake does nothing. */
  mayIdle = false;
  readonly #acquired: AcquiredGpu;
  readonly #staging: Staging;
  readonly #exchange: Staging;
  readonly #kernels = new Map<string, Promise<CompiledKernel>>();
  readonly #scratch = new Map<string, GPUBuffer>();
  readonly #memory = new MemoryMeter();
  readonly #memoryBytes: number;
  readonly #idleSpin = new IdleSpin(() => this.#spin());
  #lost: string | undefined;
  #closing = false;

  /**
   * `memoryBytes`: the GPU memory that may be used; freed buffers are kept for reuse within it.
   */
  constructor(acquired: AcquiredGpu, memoryBytes = Number.POSITIVE_INFINITY) {
    this.#memoryBytes = memoryBytes;
    this.#acquired = acquired;
    this.device = acquired.device;
    this.info = acquired.info;
    this.host = acquired.host;
    this.passBuffers = new PassBuffers(this.device);
    this.bindGroups = new BindGroups(this.device);
    this.#staging = new Staging(this, this.counters);
    this.#exchange = new Staging(this, this.counters, EXCHANGE);
    void this.device.lost.then(({ reason, message }) => {
      if (!this.#closing) this.#lost = `${reason}${message === '' ? '' : `: ${message}`}`;
    });
    // An error outside all scopes must not end the process; passes have scopes for their own errors.
    this.device.onuncapturederror = ({ error }) => console.error(`gpu: ${error.message}`);
  }

  /**
   * A zeroed storage buffer of at least `bytes`. Throws CapacityError if a limit of the adapter or its memory
   * is too small. `passage`: the buffer serves transfers to the host, and takeMemory does not count it.
   */
  async buffer(bytes: number, label: string, { passage = false } = {}): Promise<GPUBuffer> {
    const size = Math.max(16, Math.ceil(bytes / 16) * 16);
    const { bufferBytes, bindingBytes } = this.info.limits;
    const limit = Math.min(bufferBytes, bindingBytes);
    if (size > limit) {
      throw new CapacityError(
        `${label} needs ${formatBytes(size)} (${size} bytes) in one buffer, but ${this.info.name} ` +
          `binds at most ${formatBytes(limit)} (${limit} bytes)`,
        { phase: 'gpu' },
      );
    }
    this.device.pushErrorScope('out-of-memory');
    const buffer = this.device.createBuffer({
      label,
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
    hurryPolls();
    const error = await this.journal.inDetail('allocations', label, this.device.popErrorScope());
    this.requireDevice(label);
    if (error !== null)
      throw new CapacityError(
        `${label} needs ${formatBytes(size)} (${size} bytes), which ${this.info.name} does not have free`,
        { phase: 'gpu', advice: 'Close what else uses the GPU, use a smaller rank, or device cpu' },
      );
    if (!passage) this.#meter(buffer);
    return buffer;
  }

  /**
   * A buffer of at least `bytes` that is used within one submission. There is one buffer for each label; it
   * is replaced when it is too small. `passage`: see buffer.
   */
  async scratch(label: string, bytes: number, options?: { readonly passage: boolean }): Promise<GPUBuffer> {
    const known = this.#scratch.get(label);
    if (known !== undefined && known.size >= bytes) return known;
    known?.destroy();
    this.#scratch.delete(label);
    const buffer = await this.buffer(bytes, label, options);
    this.#scratch.set(label, buffer);
    return buffer;
  }

  /** Counts a buffer until it is destroyed. */
  #meter(buffer: GPUBuffer): void {
    const { size } = buffer;
    const destroy = buffer.destroy.bind(buffer);
    let alive = true;
    this.#memory.add(size);
    buffer.destroy = () => {
      if (alive) this.#memory.add(-size);
      alive = false;
      return destroy();
    };
  }

  /** True if the buffers and `bytes` more fit the memory that this program may use. */
  hasRoomFor(bytes: number): boolean {
    return this.#memory.now + bytes <= this.#memoryBytes;
  }

  /**
   * Bytes of buffers: current, and the peak since the last call. Buffers for transfers to and from the host
   * are not counted.
   */
  takeMemory(): { readonly now: number; readonly peak: number } {
    const { now, peak } = this.#memory;
    this.#memory.restart();
    return { now, peak };
  }

  async bufferOf(source: HostBytes, label: string): Promise<GPUBuffer> {
    const buffer = await this.buffer(source.byteLength, label);
    await this.upload(buffer, source);
    return buffer;
  }

  upload(target: GPUBuffer, source: HostBytes, offset = 0): Promise<void> {
    return this.#up(target, source.byteLength, this.#staging.upload(target, source, offset));
  }

  /** See Staging.uploadFilled. */
  uploadFilled(
    target: GPUBuffer,
    offset: number,
    bytes: number,
    fill: (staged: ArrayBuffer) => void,
  ): Promise<void> {
    return this.#up(target, bytes, this.#staging.uploadFilled(target, offset, bytes, fill));
  }

  download(source: GPUBuffer, target: HostBytes, offset = 0, submitted?: () => void): Promise<void> {
    const moved = this.#staging.download(source, target, offset, submitted);
    return this.#down(source, target.byteLength, moved);
  }

  /** See Staging.downloadPieces. */
  downloadPieces(
    source: GPUBuffer,
    range: DownloadRange,
    to: PieceTaker,
    submitted?: () => void,
  ): Promise<void> {
    return this.#down(source, range.bytes, this.#staging.downloadPieces(source, range, to, submitted));
  }

  /** Fills `target` with rows for another GPU; see Staging.download. */
  sendOut(
    buffer: GPUBuffer,
    { source: target, bytes, arrived }: WireRows,
    submitted?: () => void,
  ): Promise<void> {
    const sent = ArrayBuffer.isView(target)
      ? this.#exchange.download(buffer, target, 0, submitted)
      : this.#exchange.downloadToFiles(buffer, { memory: target, bytes, arrived }, submitted);
    return this.#down(buffer, bytes, sent);
  }

  /** Copies rows from another GPU to a buffer; see Staging.upload. */
  takeIn(target: GPUBuffer, { source, bytes, arrived }: WireRows, offset = 0): Promise<void> {
    const taken = ArrayBuffer.isView(source)
      ? this.#exchange.upload(target, source, offset)
      : this.#exchange.uploadFromFiles(target, { memory: source, bytes, arrived }, offset);
    return this.#up(target, bytes, taken);
  }

  #up({ label }: GPUBuffer, bytes: number, moved: Promise<void>): Promise<void> {
    return this.journal.during('uploads', label, this.#guard(`upload to ${label}`, moved), bytes);
  }

  #down({ label }: GPUBuffer, bytes: number, moved: Promise<void>): Promise<void> {
    return this.journal.during('readbacks', label, this.#guard(`readback of ${label}`, moved), bytes);
  }

  /** True when the adapter has the features and limits that the variant needs. */
  admits<Params extends KernelParams>(kernel: KernelDescriptor<Params>, params: Params): boolean {
    return admits(this.info, kernel, params);
  }

  /**
   * Compiles the kernel for these parameters, or returns the earlier result for the same parameters. Throws
   * an error with the kernel's label when the text is wrong.
   */
  compile<Params extends KernelParams, Buffers extends string, Uniforms extends string>(
    kernel: KernelDescriptor<Params, Buffers, Uniforms>,
    params: Params,
  ): Promise<CompiledKernel<Buffers, Uniforms>> {
    const label = `${kernel.name} ${JSON.stringify(params)}`;
    let compiled = this.#kernels.get(label);
    if (compiled === undefined) {
      const compiling = this.journal.during(
        'compiling',
        label,
        compileKernel(this, { kernel: kernel as unknown as KernelDescriptor, params, label }),
      );
      compiled = kernel.name === spinKernel.name ? compiling : this.keepAwake(compiling);
      this.#kernels.set(label, compiled);
    }
    return compiled as Promise<CompiledKernel<Buffers, Uniforms>>;
  }

  /**
   * Keeps the GPU busy, so that its clock stays high, until the host has done `work`, for example compiled
   * kernels or uploaded the initial factors. Returns `work`.
   */
  keepAwake<Result>(work: Promise<Result>): Promise<Result> {
    return this.info.software || this.mayIdle ? work : this.#idleSpin.during(work);
  }

  /** Keeps a large GPU busy for some milliseconds. */
  async #spin(): Promise<void> {
    const spin = await this.compile(spinKernel, {});
    const result = await this.scratch('spin', 16);
    await this.pass('spin').dispatch(spin, { result }, { rounds: 20_000 }, 2048).submit();
  }

  /** Creates a sequence of kernels that is submitted together. */
  pass(label: string): Pass {
    return new Pass(this, label);
  }

  /** Throws DeviceLostError when the device is lost; `doing` names the work that failed. */
  requireDevice(doing: string): void {
    if (this.#lost !== undefined)
      throw new DeviceLostError(`the GPU ${this.info.name} was lost during ${doing} (${this.#lost})`, {
        phase: 'gpu',
      });
  }

  /**
   * Closes the device once pending compilations and copies have ended: a thread that ends before one of
   * Dawn's promises settles crashes the process.
   */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.allSettled(this.#kernels.values());
    await this.#idleSpin.ended();
    await Promise.all([this.#staging.destroy(), this.#exchange.destroy()]);
    this.passBuffers.destroy();
    releaseGpu(this.#acquired);
    await this.device.lost;
  }

  async #guard(doing: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      await Promise.resolve();
      this.requireDevice(doing);
      throw error;
    }
    this.requireDevice(doing);
  }
}

/**
 * Gives the GPU dummy work while the host works. An idle card lowers its clock to a fifth and takes tenths of
 * a second to raise it again, which would slow the first iterations.
 */
class IdleSpin {
  /** Submits some milliseconds of work (on a large GPU) and waits for its end. */
  readonly #spin: () => Promise<void>;
  /** Number of pending works of the host. */
  #awaited = 0;
  #spinning: Promise<void> | undefined;

  constructor(spin: () => Promise<void>) {
    this.#spin = spin;
  }

  /** Returns `work`, and keeps the GPU busy until it ends. The caller does not wait for the dummy work. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    this.#awaited++;
    const ended = () => void this.#awaited--;
    work.then(ended, ended);
    this.#spinning ??= this.#spinWhileAwaited();
    return work;
  }

  /** Resolves when no dummy work is running. */
  async ended(): Promise<void> {
    await this.#spinning;
  }

  async #spinWhileAwaited(): Promise<void> {
    try {
      await new Promise((resolve) => setTimeout(resolve, 5));
      while (this.#awaited > 0) await this.#spin();
    } catch {
      // The task that uses the device reports its loss.
    } finally {
      this.#spinning = undefined;
    }
  }
}
