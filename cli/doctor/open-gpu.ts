import type { Device } from '../../engine/executor.ts';

/** The GPU that WebGPU gives, also one that computes on the processor. Throws UsageError with what to do where there is none; CancelledError. */
export async function openGpu(signal: AbortSignal): Promise<{ readonly gpu: Device; readonly close: () => Promise<void> }> {
  const { openDevices } = await import('../../api/open-devices.ts');
  const { devices } = await openDevices({ device: 'gpu', workers: 1, signal });
  const gpu = devices.find(({ info }) => info.kind === 'gpu');
  if (gpu === undefined) throw new Error('there is no GPU among the devices that were opened');
  return {
    gpu,
    close: async () => {
      await Promise.all(devices.map((device) => device.close()));
    },
  };
}
