import { SpillFolder } from '../../connectors/spill/spill-folder.ts';
import { SpillMemory } from '../../connectors/spill/spill-memory.ts';
import { CpuDevice } from '../../cpu/device.ts';
import type { EventSink } from '../../engine/events.ts';
import type { Executor } from '../../engine/run/device.ts';
import { planDevices } from '../../engine/run/devices.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { MemoryFiles } from '../../gpu/exchange/memory-files.ts';
import { type OpenDevicesOptions, OpeningDevices, type SessionDevice, isRepeatable } from './open-devices.ts';
import { requireLimits } from './system-limits.ts';

/** The devices that a session requests. */
export interface WantedDevices extends OpenDevicesOptions {
  readonly spillDir?: string | undefined;
  /** Devices that the caller has already started to open (OpeningDevices). */
  readonly begun?: unknown;
}

/** The devices of a session; its GPU may still be opening. */
export class SessionDevices {
  readonly executor: LocalExecutor;
  readonly #opening: OpeningDevices | undefined;
  #device: SessionDevice | undefined;
  /** A device only for requests for single rows; opened at the first request. */
  #requests: Executor | undefined;
  #warning: string | undefined;

  private constructor(executor: LocalExecutor, devices: OpeningDevices | SessionDevice) {
    this.executor = executor;
    if (devices instanceof OpeningDevices) this.#opening = devices;
    else this.#device = devices;
  }

  /**
   * Opens devices, and waits for a GPU unless it started to open before. Throws the errors of
   * `Session.create`.
   */
  static async open({ spillDir, begun, ...wanted }: WantedDevices): Promise<SessionDevices> {
    const folder = new SpillFolder(spillDir);
    // Opens a given folder now, so that an unusable one is reported before any work.
    if (spillDir !== undefined) await folder.open();
    const spilled = new SpillMemory(folder);
    const opening = begun instanceof OpeningDevices ? begun : new OpeningDevices(wanted);
    const isFake = wanted.fakeDevices !== undefined;
    try {
      // `fakeDevices` may replace the CPU device by several, which is only known when no GPU was found.
      const first = isFake ? [] : [opening.openCpu()];
      const executor = new LocalExecutor(first, spilled, () => new MemoryFiles());
      const devices = new SessionDevices(executor, opening);
      if (opening !== begun || isFake) await devices.opened();
      return devices;
    } catch (error) {
      await opening.close();
      await spilled.close();
      throw error;
    }
  }

  /** No devices: tasks throw UsageError. */
  static none(): SessionDevices {
    const nothing = { requested: 'cpu', kind: 'cpu', adapter: null, description: 'no device' } as const;
    return new SessionDevices(new LocalExecutor([]), nothing);
  }

  get device(): SessionDevice {
    if (this.#device === undefined) throw new Error('the devices of this session are still being opened');
    return this.#device;
  }

  /** True while a GPU is still being opened. */
  get opening(): boolean {
    return this.#device === undefined;
  }

  /** Waits for the GPU, and passes its warning to `onEvent`. Throws the errors of `Session.create`. */
  async opened(onEvent?: EventSink): Promise<void> {
    if (this.#opening === undefined || this.#device !== undefined) return;
    const { devices, device } = await this.#opening.all();
    if (this.opening) {
      this.executor.add(devices.slice(this.executor.devices.length));
      this.#device = device;
      this.#warning = device.warning;
    }
    this.passWarning(onEvent);
  }

  /** Passes the devices' warning to the first listener. */
  passWarning(onEvent: EventSink | undefined): void {
    if (onEvent === undefined || this.#warning === undefined) return;
    onEvent({ type: 'warning', text: this.#warning });
    this.#warning = undefined;
  }

  /** The devices that serve only requests. */
  get requests(): Executor {
    return (this.#requests ??= openRequests(this.executor));
  }

  async close(): Promise<void> {
    await Promise.all([this.#opening?.close(), this.#requests?.close()]);
    await this.executor.close();
  }
}

/** A request takes a thread for less than a millisecond, so a few threads serve thousands per second. */
const MOST_THREADS = 4;

/**
 * Opens a CPU device for requests for single rows, in addition to the session's devices. It has at most the
 * number of threads of the session's CPU. Throws CapacityError if system limits leave too few open files or
 * too little address space.
 */
function openRequests(executor: Executor): Executor {
  const { parallelism } = planDevices(executor).host;
  const threads = Math.min(MOST_THREADS, parallelism);
  requireLimits(threads);
  return new LocalExecutor([new CpuDevice({ threads, collectsHere: false, repeatable: isRepeatable })]);
}
