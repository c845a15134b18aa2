import { GpuThread } from '../../gpu/gpu-thread.ts';
import { hasGraphicsDevice } from '../../gpu/probe/graphics-device.ts';
import { KnownDrivers } from '../../gpu/probe/known-driver.ts';
import type { Adapter } from '../../gpu/probe/probe-webgpu.ts';
import type { DeviceRequest } from './device-request.ts';

/** The machine flags that say which GPU a session opens. */
export interface AheadOptions {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly fakeDevices?: number | undefined;
}

/**
 * A GPU that is opened while a command is still being loaded, and before threads of the CPU take all cores:
 * only one whose driver has served before, for a session of one GPU of the system's choice. A session takes
 * it; disposal closes one that was not taken.
 *
 */
export class GpuAhead implements AsyncDisposable {
  #left: { readonly adapter: Adapter; readonly thread: GpuThread } | undefined;

  private constructor(adapter: Adapter, thread: GpuThread) {
    this.#left = { adapter, thread };
  }

  /** Undefined where the session looks for its devices itself. */
  static async begin({ device, deviceMemory, fakeDevices }: AheadOptions): Promise<GpuAhead | undefined> {
    if (
      (device !== 'gpu' && device !== 'auto') ||
      fakeDevices !== undefined ||
      (device === 'auto' && !hasGraphicsDevice())
    )
      return undefined;
    const adapter = (await new KnownDrivers().take())?.adapter;
    return adapter && new GpuAhead(adapter, new GpuThread({ memoryBytes: deviceMemory }));
  }

  /** The adapter, unless the GPU was taken. */
  get adapter(): Adapter | undefined {
    return this.#left?.adapter;
  }

  /** The thread, for a device that closes it; undefined after the first time. */
  take(): GpuThread | undefined {
    const thread = this.#left?.thread;
    this.#left = undefined;
    return thread;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const adapter = this.adapter;
    const thread = this.take();
    if (adapter === undefined || thread === undefined) return;
    // Its driver has served, which the next run may know.
    await thread.info.then(() => new KnownDrivers().keep(adapter)).catch(() => undefined);
    await thread.end();
  }
}
