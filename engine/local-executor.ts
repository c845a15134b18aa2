import type { Device, Executor } from './executor.ts';
import { HostMemory } from './run/host-memory.ts';

/** Runs tasks with worker threads of this process: each device brings its own pool (see `ThreadPool`). */
export class LocalExecutor implements Executor {
  readonly devices: readonly Device[];
  readonly memory = new HostMemory();

  constructor(devices: readonly Device[]) {
    this.devices = devices;
  }

  async close(): Promise<void> {
    await Promise.all(this.devices.map((device) => device.close()));
  }
}
