import { handlers } from './generated/tasks.ts';
import { OpenedGpu } from './opened-gpu.ts';
import { handleBy } from './registry.ts';
import type { AcquiredGpu } from './webgpu/open-adapter.ts';

/** A GPU of a thread of Node, with all tasks. `memoryBytes`: see Gpu. */
export function openInThread(acquired: AcquiredGpu, memoryBytes: number | undefined): OpenedGpu {
  return new OpenedGpu(acquired, handleBy(handlers), memoryBytes);
}
