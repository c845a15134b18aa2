import { afterAll, beforeAll, expect, it } from 'vitest';
import { kernelTexts } from '../../../gpu/generated/kernels-wgsl.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { floatClasses, LEAST_NORMAL } from '../../support/float-classes.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';

let gpu: Gpu;
beforeAll(async () => {
  if (noGpu === undefined) gpu = await openTestGpu();
});
afterAll(() => gpu?.close());

it.skipIf(noGpu)('the tests of numbers in shaders know every class of float32', async () => {
  const numbers = Float32Array.of(...floatClasses, Infinity, -Infinity, NaN);
  const buffer = await gpu.bufferOf(numbers, 'numbers');
  const module = gpu.device.createShaderModule({
    code: `${kernelTexts['parts/finite']}
      @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
      @compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3u) {
        let x = bitcast<f32>(numbers[group.x]);
        numbers[group.x] = u32(is_finite(x)) + 2 * u32(is_positive(x)) + 4 * u32(goes_on(x));
      }`,
  });
  const pipeline = gpu.device.createComputePipeline({ layout: 'auto', compute: { module } });
  const encoder = gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    gpu.device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer } }],
    }),
  );
  pass.dispatchWorkgroups(numbers.length);
  pass.end();
  gpu.device.queue.submit([encoder.finish()]);
  const found = new Uint32Array(numbers.length);
  await gpu.download(buffer, found);
  const wrong = [...numbers].filter((x, i) => {
    const finite = Number.isFinite(x);
    const expected = Number(finite) + 2 * Number(finite && x > 0) + 4 * Number(!finite || x > 0);
    // A GPU may take a subnormal number as 0 in x > 0.
    const mask = x !== 0 && Math.abs(x) < LEAST_NORMAL ? 3 : 7;
    return ((found[i] ^ expected) & mask) !== 0;
  });
  expect(wrong).toEqual([]);
});
