import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kernelTimes } from '../../../gpu/checks/check-kernels.task.ts';
import { runTask } from '../../../gpu/checks/support/run-kernel.ts';
import { spinKernel, type Gpu } from '../../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';

describe.skipIf(noGpu)('kernel-times', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  const spin = async () => {
    const kernel = await gpu.compile(spinKernel, {});
    await gpu
      .pass('spin')
      .dispatch(kernel, { result: await gpu.scratch('result', 16) }, { rounds: 100 }, 1)
      .submit();
  };
  const times = async (run: boolean) => (await runTask(gpu, kernelTimes, { run }, {})).values;

  it('gives the times of timed kernels once', async () => {
    await spin();
    expect(await times(true)).toEqual({});
    await spin();
    await spin();
    const taken = await times(false);
    expect(Object.keys(taken ?? {})).toEqual(gpu.info.timestamps ? ['spin'] : []);
    for (const milliseconds of Object.values(taken ?? {})) expect(milliseconds).toBeGreaterThan(0);
    await spin();
    expect(await times(false)).toEqual({});
  });
});
