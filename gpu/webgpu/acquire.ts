import { UsageError } from '../../engine/errors.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import { copiesEnded, readPiece, writePiece } from '../exchange/copy-files.ts';
import { FreshMemory } from '../exchange/fresh-memory.ts';
import type { AcquireOptions } from './gpu-info.ts';
import type { GpuHost } from './host.ts';
import { type AcquiredGpu, openAdapter, usedFeatures } from './open-adapter.ts';
import { pacePolls } from './polls.ts';

/** The services of Node. */
const nodeHost: GpuHost = {
  pieces: { write: writePiece, read: readPiece, ended: copiesEnded },
  awaitedValues: (length) => new FreshMemory(length),
  collectGarbage,
};

/** Opens the best adapter. Throws UsageError with the reason when there is none. */
export async function acquireGpu({
  robust = false,
  without = [],
}: AcquireOptions = {}): Promise<AcquiredGpu> {
  const { create, globals } = await loadWebGpu();
  Object.assign(globalThis, globals);
  const toggles = [
    'allow_unsafe_apis',
    'vulkan_enable_f16_on_nvidia',
    ...(robust ? [] : ['disable_robustness', 'disable_workgroup_init']),
  ];
  const instance = create([
    `enable-dawn-features=${toggles.join(',')}`,
    'disable-dawn-features=timestamp_quantization',
  ]);
  const adapter = await instance.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) {
    throw new UsageError('no GPU: WebGPU found no adapter on this machine', {
      advice:
        'Install the driver of the graphics card with its Vulkan part (on Linux also libvulkan1), see ' +
        'factorflow doctor, or use device cpu',
    });
  }
  const acquired = await openAdapter({ instance, adapter, host: nodeHost }, usedFeatures, { without });
  pacePolls(acquired.info.software);
  return acquired;
}

async function loadWebGpu(): Promise<typeof import('webgpu')> {
  try {
    return await import('webgpu');
  } catch (cause) {
    throw new UsageError(
      'no GPU: the package webgpu does not load here ' +
        `(${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)})`,
      {
        advice:
          'There is no build of it for this system, or a library that it needs is missing; use device cpu',
        cause,
      },
    );
  }
}
