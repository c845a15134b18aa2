import { CpuDevice } from '../../../cpu/device.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import { noGpu } from '../gpu/open-gpu.ts';

/** The kinds of device that tests of tasks go over. `skip`: the reason why a kind can't be opened here. */
export const deviceKinds = [
  { kind: 'CPU' as const, open: async () => new CpuDevice({ threads: 2 }), skip: undefined },
  { kind: 'GPU' as const, open: () => openGpuDevice(), skip: noGpu },
];
