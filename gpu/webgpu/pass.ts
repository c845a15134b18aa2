import { sharedClock } from '../../engine/threads/shared-clock.ts';
import type { DeviceSpan } from '../../engine/trace/trace.ts';
import type { GpuInfo } from './gpu-info.ts';
import type { Binding, CompiledKernel } from './kernel.ts';
import type { TransferCounters } from './staging.ts';

/** The parts of an opened GPU that a pass uses. */
interface PassGpu {
  readonly device: GPUDevice;
  readonly info: GpuInfo;
  readonly counters: TransferCounters;
  readonly passBuffers: PassBuffers;
  readonly bindGroups: BindGroups;
  readonly journal: Journal;
  readonly clock: KernelClock;
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

export type Groups = number | { readonly threads: number };

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
   * Adds a kernel. `groups`: the number of workgroups, or of threads, which is rounded up to whole workgroups. Above
   * the limit of one dimension the second one is used, too: a workgroup's number is
   * `workgroup_id.y * num_workgroups.x + workgroup_id.x`. There may be more workgroups than asked for; the kernel
   * must ignore the excess numbers.
   */
  dispatch<Buffers extends string, Uniforms extends string>(
    compiled: CompiledKernel<Buffers, Uniforms>,
    bindings: Readonly<Record<Buffers, Binding>>,
    uniforms: Readonly<Record<Uniforms, number>>,
    groups: Groups,
  ): this {
    const { kernel, params } = compiled;
    const workgroups =
      typeof groups === 'number' ? groups : Math.ceil(groups.threads / kernel.workgroup(params).threads);
    if (workgroups > 0)
      this.#dispatches.push({ compiled, bindings, uniforms: uniformBytes(compiled, uniforms), workgroups });
    return this;
  }

  /** Runs the sequence. */
  submit(options: SubmitOptions = {}): Promise<PassResult> {
    return this.#gpu.journal.inDetail('passes', this.#label, this.#submit(options));
  }

  async #submit({ timed = false, read, submitted }: SubmitOptions): Promise<PassResult> {
    const { device, passBuffers, counters, clock } = this.#gpu;
    const clocked = clock.running;
    device.pushErrorScope('validation');
    const uniforms = passBuffers.uniforms(this.#uniformBytes());
    const stamps = this.#stamps(timed || clocked);
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
    const times = stamps?.each ? this.#times(stamped) : {};
    if (clocked) clock.add(times);
    return { times, bytes: content.slice(timeBytes, timeBytes + readBytes) };
  }

  #stamps(timed: boolean): TimeStamps | undefined {
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
  #encode(encoder: GPUCommandEncoder, uniforms: GPUBuffer, stamps: TimeStamps | undefined): void {
    const { limits } = this.#gpu.info;
    let shared: GPUComputePassEncoder | undefined;
    this.#dispatches.forEach((dispatch, at) => {
      const pass = stamps?.each
        ? encoder.beginComputePass({ label: dispatch.compiled.label, timestampWrites: stamps.of(at) })
        : (shared ??= encoder.beginComputePass({ label: this.#label, timestampWrites: stamps?.of(0) }));
      pass.setPipeline(dispatch.compiled.pipeline);
      pass.setBindGroup(
        0,
        this.#gpu.bindGroups.of(
          dispatch.compiled,
          { buffer: uniforms, offset: at * UNIFORM_STEP, size: Math.max(16, dispatch.uniforms.byteLength) },
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
    stamps: TimeStamps | undefined,
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
      if (stamps?.each) stamps.destroy();
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
 * Time stamps by the GPU's clock: at the beginning and the end of each dispatch, or with count 0 at the end of a
 * submission. All submissions of a queue share one object for the end, since each writes and copies its time
 * before the next begins.
 */
class TimeStamps {
  /** True if every dispatch has stamps. */
  readonly each: boolean;
  readonly bytes: number;
  readonly #set: GPUQuerySet;
  readonly #resolved: GPUBuffer;

  constructor(device: GPUDevice, count: number) {
    this.each = count > 0;
    this.bytes = 8 * Math.max(1, 2 * count);
    this.#set = device.createQuerySet({ type: 'timestamp', count: this.bytes / 8 });
    this.#resolved = device.createBuffer({
      label: 'time stamps',
      size: this.bytes,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
  }

  of(at: number): GPUComputePassTimestampWrites {
    return this.each
      ? { querySet: this.#set, beginningOfPassWriteIndex: 2 * at, endOfPassWriteIndex: 2 * at + 1 }
      : { querySet: this.#set, endOfPassWriteIndex: 0 };
  }

  /** Writes the stamps to the beginning of `target`. */
  resolve(encoder: GPUCommandEncoder, target: GPUBuffer): void {
    encoder.resolveQuerySet(this.#set, 0, this.bytes / 8, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, target, 0, this.bytes);
  }

  destroy(): void {
    this.#resolved.destroy();
    this.#set.destroy();
  }
}

/** Buffers that passes reuse: creating them takes longer than a small kernel. */
export class PassBuffers {
  readonly #device: GPUDevice;
  #uniforms: GPUBuffer | undefined;
  readonly #results: GPUBuffer[] = [];
  #endStamp: TimeStamps | undefined;

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /**
   * Writes the uniforms of the next pass and returns their buffer. All passes share one buffer: the queue
   * executes writes and passes in order, so the earlier passes have read it before this write.
   */
  uniforms(bytes: Uint8Array<ArrayBuffer>): GPUBuffer {
    if (this.#uniforms === undefined || this.#uniforms.size < bytes.byteLength) {
      this.#uniforms?.destroy();
      this.#uniforms = this.#device.createBuffer({
        label: 'uniforms',
        size: Math.max(4096, bytes.byteLength),
        usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
      });
    }
    this.#device.queue.writeBuffer(this.#uniforms, 0, bytes);
    return this.#uniforms;
  }

  /** A buffer to map for reading; the caller unmaps and returns it. */
  takeResult(bytes: number): GPUBuffer {
    const at = this.#results.findIndex(({ size }) => size >= bytes);
    if (at >= 0) return this.#results.splice(at, 1)[0];
    return this.#device.createBuffer({
      label: 'result',
      size: Math.max(4096, bytes),
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
  }

  giveResult(buffer: GPUBuffer): void {
    this.#results.push(buffer);
  }

  /** For a device that has time stamps. */
  endStamp(): TimeStamps {
    return (this.#endStamp ??= new TimeStamps(this.#device, 0));
  }

  destroy(): void {
    this.#endStamp?.destroy();
    this.#uniforms?.destroy();
    for (const buffer of this.#results) buffer.destroy();
  }
}

/** Most bind groups that are kept for a kernel: an iteration uses the same few again and again. */
const MOST_KEPT = 64;

/**
 * A cache of bind groups, by kernel and buffers. Creating one occupies the GPU's thread for 40 µs, as long
 * as a kernel on small data runs, and each iteration of ALS binds the same buffers (bench/results,
 * `als-gpu-kept-bindings`).
 */
export class BindGroups {
  readonly #device: GPUDevice;
  readonly #numbers = new WeakMap<GPUBuffer, number>();
  readonly #kept = new WeakMap<GPUBindGroupLayout, Map<string, GPUBindGroup>>();
  #buffers = 0;

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** Throws where the kernel names a buffer that is not bound. */
  of(
    { kernel, label, layout }: CompiledKernel,
    uniforms: GPUBufferBinding,
    bindings: Readonly<Record<string, Binding>>,
  ): GPUBindGroup {
    const resources = [uniforms];
    for (const { name } of kernel.bindings) {
      const binding = bindings[name];
      if (binding === undefined) throw new Error(`kernel ${label}: no buffer for ${name}`);
      resources.push('buffer' in binding ? binding : { buffer: binding });
    }
    const key = resources
      .map(({ buffer, offset = 0, size = '' }) => `${this.#numberOf(buffer)}+${offset}:${size}`)
      .join();
    let kept = this.#kept.get(layout);
    if (kept === undefined) this.#kept.set(layout, (kept = new Map()));
    let group = kept.get(key);
    if (group === undefined) {
      const entries = resources.map((resource, binding) => ({ binding, resource }));
      group = this.#device.createBindGroup({ label, layout, entries });
      // The first in a map is the oldest.
      if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value as string);
      kept.set(key, group);
    }
    return group;
  }

  #numberOf(buffer: GPUBuffer): number {
    let number = this.#numbers.get(buffer);
    if (number === undefined) this.#numbers.set(buffer, (number = this.#buffers++));
    return number;
  }
}

/** Most spans that wait for the next reply of the thread. */
const MOST_WAITING = 10_000;

/** Records, for a trace, what a GPU's thread does in addition to tasks: transfers and compiling. */
export class Journal {
  /** True to also note passes and allocations: see inDetail. */
  detailed = false;
  #spans: DeviceSpan[] = [];

  /** Notes the time until `work` ends; a failure is not noted. */
  async during<Result>(row: string, name: string, work: Promise<Result>, bytes?: number): Promise<Result> {
    const start = sharedClock();
    const result = await work;
    if (this.#spans.length < MOST_WAITING)
      this.#spans.push({
        row,
        name,
        start,
        milliseconds: sharedClock() - start,
        ...(bytes === undefined ? {} : { args: { bytes } }),
      });
    return result;
  }

  /** Like `during`, for work that is recorded only if the journal is detailed. */
  inDetail<Result>(row: 'passes' | 'allocations', name: string, work: Promise<Result>): Promise<Result> {
    return this.detailed ? this.during(row, name, work) : work;
  }

  /** The spans since the last call. */
  take(): readonly DeviceSpan[] {
    const spans = this.#spans;
    this.#spans = [];
    return spans;
  }
}
