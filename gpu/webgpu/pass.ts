import type { BindGroups } from './bind-groups.ts';
import type { Binding, CompiledKernel } from './kernel.ts';
import type { TransferCounters } from './counters.ts';
import type { GpuInfo } from './gpu-info.ts';
import type { Journal } from './journal.ts';
import type { PassBuffers } from './pass-buffers.ts';
import { type EndStamp, TimeStamps } from './time-stamps.ts';

/** The parts of an opened GPU that a pass uses. */
interface PassGpu {
  readonly device: GPUDevice;
  readonly info: GpuInfo;
  readonly counters: TransferCounters;
  readonly passBuffers: PassBuffers;
  readonly bindGroups: BindGroups;
  readonly journal: Journal;
  readonly turn: Turn;
  requireDevice(doing: string): void;
}

/** The work of one request on the GPU. */
export interface Turn {
  /** True if its passes shall record in `ended` when they end. */
  readonly clocked: boolean;
  /**
   * Time at which the last kernel so far ended, in milliseconds of the GPU's clock. Its zero is arbitrary:
   * only differences have a meaning.
   */
  ended?: number;
}

/** Milliseconds on the GPU by kernel name; empty if the adapter has no timestamps, or without `timed`. */
export type KernelTimes = Readonly<Record<string, number>>;

export interface SubmitOptions {
  readonly timed?: boolean;
  /** A buffer whose bytes are returned with the result, without another round trip. */
  readonly read?: { readonly buffer: GPUBuffer; readonly bytes: number; readonly offset?: number };
  /** Called when the kernels are submitted, before their result is awaited. */
  readonly submitted?: () => void;
}

export interface PassResult {
  readonly times: KernelTimes;
  /** Bytes of `read`. */
  readonly bytes: ArrayBuffer;
}

interface Dispatch {
  readonly compiled: CompiledKernel;
  readonly bindings: Readonly<Record<string, Binding>>;
  readonly uniforms: ArrayBuffer;
  readonly workgroups: number;
}

/** Uniform bindings must start at multiples of this. */
const UNIFORM_STEP = 256;

/**
 * A sequence of kernels that is submitted together; each kernel sees the writes of the kernels before it.
 * `submit` resolves when the GPU has finished, and throws validation errors of the whole sequence with the
 * kernels' labels.
 */
export class Pass {
  readonly #gpu: PassGpu;
  readonly #label: string;
  readonly #turn: Turn;
  readonly #dispatches: Dispatch[] = [];

  constructor(gpu: PassGpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
    this.#turn = gpu.turn;
  }

  /**
   * Adds a kernel. Workgroups beyond the limit of one dimension use the second dimension: a workgroup's
   * number is `workgroup_id.y * num_workgroups.x + workgroup_id.x`. There may be more workgroups than
   * `workgroups`; the kernel must ignore the excess numbers.
   */
  dispatch<Buffers extends string, Uniforms extends string>(
    compiled: CompiledKernel<Buffers, Uniforms>,
    bindings: Readonly<Record<Buffers, Binding>>,
    uniforms: Readonly<Record<Uniforms, number>>,
    workgroups: number,
  ): this {
    if (workgroups > 0)
      this.#dispatches.push({ compiled, bindings, uniforms: uniformBytes(compiled, uniforms), workgroups });
    return this;
  }

  /** Runs the sequence. */
  submit(options: SubmitOptions = {}): Promise<PassResult> {
    return this.#gpu.journal.inDetail('passes', this.#label, this.#submit(options));
  }

  async #submit({ timed: asked = false, read, submitted }: SubmitOptions): Promise<PassResult> {
    const { device, passBuffers, counters } = this.#gpu;
    device.pushErrorScope('validation');
    const uniforms = passBuffers.uniforms(this.#uniformBytes());
    const stamps = this.#stamps(asked);
    const encoder = device.createCommandEncoder({ label: this.#label });
    const timeBytes = stamps?.bytes ?? 0;
    const readBytes = Math.ceil((read?.bytes ?? 0) / 4) * 4;
    const result = passBuffers.takeResult(timeBytes + readBytes);
    this.#encode(encoder, uniforms, stamps);
    stamps?.resolve(encoder, result);
    if (readBytes > 0) {
      const { buffer, offset = 0 } = read as NonNullable<typeof read>;
      encoder.copyBufferToBuffer(buffer, offset, result, timeBytes, readBytes);
    }
    device.queue.submit([encoder.finish()]);
    const scope = device.popErrorScope();
    if (readBytes > 0) counters.down(readBytes);
    submitted?.();
    const content = await this.#content(result, timeBytes + readBytes, scope, stamps);
    const stamped = new BigUint64Array(content, 0, timeBytes / 8);
    if (stamps) this.#turn.ended = Math.max(this.#turn.ended ?? 0, Number(stamped.at(-1)) / 1e6);
    return {
      times: stamps instanceof TimeStamps ? this.#times(stamped) : {},
      bytes: content.slice(timeBytes, timeBytes + readBytes),
    };
  }

  #stamps(timed: boolean): TimeStamps | EndStamp | undefined {
    const { device, info, passBuffers } = this.#gpu;
    const count = this.#dispatches.length;
    if (!info.timestamps || count === 0) return undefined;
    if (timed && count <= 2048) return new TimeStamps(device, count);
    return this.#turn.clocked ? passBuffers.endStamp() : undefined;
  }

  /**
   * Encodes the dispatches: all in one compute pass, or each in a pass of its own if each is timed, since
   * time stamps are written at the ends of passes.
   */
  #encode(encoder: GPUCommandEncoder, uniforms: GPUBuffer, stamps: TimeStamps | EndStamp | undefined): void {
    const { limits } = this.#gpu.info;
    let shared: GPUComputePassEncoder | undefined;
    this.#dispatches.forEach((dispatch, at) => {
      const pass =
        stamps instanceof TimeStamps
          ? encoder.beginComputePass({ label: dispatch.compiled.label, timestampWrites: stamps.of(at) })
          : (shared ??= encoder.beginComputePass({ label: this.#label, timestampWrites: stamps?.writes }));
      pass.setPipeline(dispatch.compiled.pipeline);
      pass.setBindGroup(
        0,
        this.#gpu.bindGroups.of(
          dispatch.compiled,
          {
            buffer: uniforms,
            offset: at * UNIFORM_STEP,
            size: Math.max(16, dispatch.uniforms.byteLength),
          },
          dispatch.bindings,
        ),
      );
      const wide = Math.min(dispatch.workgroups, limits.workgroupsPerDimension, 32768);
      pass.dispatchWorkgroups(wide, Math.ceil(dispatch.workgroups / wide));
      if (pass !== shared) pass.end();
    });
    shared?.end();
  }

  /**
   * Waits until the GPU has finished, and returns the first `bytes` bytes of `result`. Throws the validation
   * error that `scope` reports, if any.
   */
  async #content(
    result: GPUBuffer,
    bytes: number,
    scope: Promise<GPUError | null>,
    stamps: TimeStamps | EndStamp | undefined,
  ): Promise<ArrayBuffer> {
    let content = new ArrayBuffer(0);
    try {
      if (bytes > 0) {
        await result.mapAsync(GPUMapMode.READ);
        content = result.getMappedRange(0, bytes).slice(0);
        result.unmap();
      } else await this.#gpu.device.queue.onSubmittedWorkDone();
      this.#gpu.passBuffers.giveResult(result);
    } catch (error) {
      const invalid = await scope.catch(() => null);
      this.#gpu.requireDevice(this.#label);
      throw new Error(`gpu pass ${this.#label}: ${invalid?.message ?? String(error)}`, { cause: error });
    } finally {
      if (stamps instanceof TimeStamps) stamps.destroy();
    }
    const invalid = await scope;
    this.#gpu.requireDevice(this.#label);
    if (invalid !== null) throw new Error(`gpu pass ${this.#label}: ${invalid.message}`);
    return content;
  }

  #uniformBytes(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(Math.max(1, this.#dispatches.length) * UNIFORM_STEP);
    this.#dispatches.forEach(({ uniforms }, at) => bytes.set(new Uint8Array(uniforms), at * UNIFORM_STEP));
    return bytes;
  }

  #times(stamps: BigUint64Array): KernelTimes {
    const times: Record<string, number> = {};
    this.#dispatches.forEach(({ compiled }, at) => {
      const { name } = compiled.kernel;
      times[name] = (times[name] ?? 0) + Number(stamps[2 * at + 1] - stamps[2 * at]) / 1e6;
    });
    return times;
  }
}

function uniformBytes(
  { kernel, label }: CompiledKernel,
  values: Readonly<Record<string, number>>,
): ArrayBuffer {
  const fields = Object.entries(kernel.uniforms);
  const bytes = new ArrayBuffer(Math.max(16, Math.ceil(fields.length / 4) * 16));
  const view = new DataView(bytes);
  fields.forEach(([name, type], at) => {
    const value = values[name];
    if (value === undefined) throw new Error(`kernel ${label}: no value for the uniform ${name}`);
    if (type === 'f32') view.setFloat32(4 * at, value, true);
    else if (type === 'i32') view.setInt32(4 * at, value, true);
    else view.setUint32(4 * at, value, true);
  });
  return bytes;
}

/** Adds up the kernels' times on the GPU while `running` is true; see the task kernel-times. */
export class KernelClock {
  running = false;
  #times: Record<string, number> = {};

  add(times: KernelTimes): void {
    for (const [kernel, milliseconds] of Object.entries(times))
      this.#times[kernel] = (this.#times[kernel] ?? 0) + milliseconds;
  }

  /** The sums since the last call. */
  take(): KernelTimes {
    const times = this.#times;
    this.#times = {};
    return times;
  }
}

/**
 * A pass that adds its kernels' times to a clock. For this each kernel is a compute pass of its own, which
 * costs some microseconds.
 */
export class TimedPass extends Pass {
  readonly #clock: KernelClock;

  constructor(clock: KernelClock, ...of: ConstructorParameters<typeof Pass>) {
    super(...of);
    this.#clock = clock;
  }

  override async submit(options: Parameters<Pass['submit']>[0] = {}) {
    const result = await super.submit({ ...options, timed: true });
    this.#clock.add(result.times);
    return result;
  }
}
