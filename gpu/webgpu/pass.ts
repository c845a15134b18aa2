import type { KernelDescriptor, KernelParams } from './kernel.ts';
import type { TransferCounters } from './counters.ts';
import type { GpuInfo } from './gpu-info.ts';
import type { Journal } from './journal.ts';
import type { PassBuffers } from './pass-buffers.ts';

/** The parts of an opened GPU that a pass uses. */
interface PassGpu {
  readonly device: GPUDevice;
  readonly info: GpuInfo;
  readonly counters: TransferCounters;
  readonly passBuffers: PassBuffers;
  readonly journal: Journal;
  requireDevice(doing: string): void;
}

/** A kernel compiled for one variant. */
export interface CompiledKernel<Buffers extends string = string, Uniforms extends string = string> {
  readonly kernel: KernelDescriptor<KernelParams, Buffers, Uniforms>;
  readonly params: KernelParams;
  /** The name in errors: "normal-equations {"rank":100}". */
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  /** Layout of its uniforms and buffers. */
  readonly layout: GPUBindGroupLayout;
}

/** A buffer, or a part of one. */
export type Binding =
  | GPUBuffer
  | { readonly buffer: GPUBuffer; readonly offset?: number; readonly size?: number };

/** Milliseconds on the GPU by kernel name; empty without timestamps on the adapter, or without `timed`. */
export type KernelTimes = Readonly<Record<string, number>>;

export interface SubmitOptions {
  readonly timed?: boolean;
  /** A buffer whose bytes come back with the result, without another round trip. */
  readonly read?: { readonly buffer: GPUBuffer; readonly bytes: number; readonly offset?: number };
  /** Called when the sequence is submitted. */
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

/** Offsets of uniform bindings are multiples of this. */
const UNIFORM_STEP = 256;

/**
 * A sequence of kernels that is submitted together; each kernel sees the writes of those before it. `submit`
 * resolves when the GPU has finished, and throws the validation errors of the whole sequence with the
 * kernels' labels.
 *
 */
export class Pass {
  readonly #gpu: PassGpu;
  readonly #label: string;
  readonly #dispatches: Dispatch[] = [];

  constructor(gpu: PassGpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
  }

  /**
   * Adds a kernel. Workgroups beyond the limit of one dimension go to the second: a workgroup's number is
   * `workgroup_id.y * num_workgroups.x + workgroup_id.x`, and workgroups beyond the last number do nothing.
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
    const count = this.#dispatches.length;
    device.pushErrorScope('validation');
    const uniforms = passBuffers.uniforms(this.#uniformBytes());
    const stamps = asked ? this.#stamps(count) : undefined;
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
    return {
      times: stamps ? this.#times(new BigUint64Array(content, 0, 2 * count)) : {},
      bytes: content.slice(timeBytes, timeBytes + readBytes),
    };
  }

  #stamps(count: number): TimeStamps | undefined {
    const { device, info } = this.#gpu;
    return info.timestamps && count > 0 && count <= 2048 ? new TimeStamps(device, count) : undefined;
  }

  /** The dispatches, in one compute pass, or with stamps each in a pass of its own. */
  #encode(encoder: GPUCommandEncoder, uniforms: GPUBuffer, stamps: TimeStamps | undefined): void {
    const { limits } = this.#gpu.info;
    let shared: GPUComputePassEncoder | undefined;
    this.#dispatches.forEach((dispatch, at) => {
      const pass = stamps
        ? encoder.beginComputePass({ label: dispatch.compiled.label, timestampWrites: stamps.of(at) })
        : (shared ??= encoder.beginComputePass({ label: this.#label }));
      pass.setPipeline(dispatch.compiled.pipeline);
      pass.setBindGroup(
        0,
        this.#bindGroup(dispatch, {
          buffer: uniforms,
          offset: at * UNIFORM_STEP,
          size: Math.max(16, dispatch.uniforms.byteLength),
        }),
      );
      const wide = Math.min(dispatch.workgroups, limits.workgroupsPerDimension, 32768);
      pass.dispatchWorkgroups(wide, Math.ceil(dispatch.workgroups / wide));
      if (stamps) pass.end();
    });
    shared?.end();
  }

  /** The first bytes of the result when the GPU has finished; `scope` has the errors of validation. */
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
      stamps?.destroy();
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

  #bindGroup({ compiled, bindings }: Dispatch, uniforms: GPUBufferBinding): GPUBindGroup {
    const entries: GPUBindGroupEntry[] = [{ binding: 0, resource: uniforms }];
    compiled.kernel.bindings.forEach(({ name }, at) => {
      const binding = bindings[name];
      if (binding === undefined) throw new Error(`kernel ${compiled.label}: no buffer for ${name}`);
      entries.push({ binding: at + 1, resource: 'buffer' in binding ? binding : { buffer: binding } });
    });
    return this.#gpu.device.createBindGroup({ label: compiled.label, layout: compiled.layout, entries });
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

/** Time stamps at the beginning and the end of each dispatch. */
class TimeStamps {
  readonly bytes: number;
  readonly #count: number;
  readonly #set: GPUQuerySet;
  readonly #resolved: GPUBuffer;

  constructor(device: GPUDevice, count: number) {
    this.bytes = 16 * count;
    this.#count = count;
    this.#set = device.createQuerySet({ type: 'timestamp', count: 2 * count });
    this.#resolved = device.createBuffer({
      size: this.bytes,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
  }

  of(at: number): GPUComputePassTimestampWrites {
    return { querySet: this.#set, beginningOfPassWriteIndex: 2 * at, endOfPassWriteIndex: 2 * at + 1 };
  }

  /** Writes the stamps to the beginning of `target`. */
  resolve(encoder: GPUCommandEncoder, target: GPUBuffer): void {
    encoder.resolveQuerySet(this.#set, 0, 2 * this.#count, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, target, 0, this.bytes);
  }

  destroy(): void {
    this.#resolved.destroy();
    this.#set.destroy();
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
