/** Bandwidth of a GPU's memory, for lower bounds of iteration times. */
import { readFileSync } from 'node:fs';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import type { DeviceBlock, DeviceMatrix } from '../../gpu/device/resources.ts';
import { median } from '../harness.ts';

const RATINGS_A_WORKGROUP = 256;
const QUADS_A_WORKGROUP = 1024;

/** Bytes copied at once. */
const COPY_BYTES = 512 << 20;

/**
 * Bytes per millisecond of a large copy on the GPU by a kernel; reading and writing both count.
 * (`copyBufferToBuffer` reaches a fifth of it.)
 */
export async function copyRate(gpu: Gpu): Promise<number> {
  const bytes = Math.min(COPY_BYTES, gpu.info.limits.bindingBytes, gpu.info.software ? 1 << 20 : COPY_BYTES);
  const [source, copy] = [await gpu.buffer(bytes, 'copied'), await gpu.buffer(bytes, 'copy')];
  const quads = bytes / 16;
  const milliseconds = await timeOfKernel(
    gpu,
    'copy',
    { QUADS: quads },
    [source, copy],
    Math.ceil(quads / QUADS_A_WORKGROUP),
  );
  source.destroy();
  copy.destroy();
  return (2 * bytes) / milliseconds;
}

/** Bytes per millisecond of gathering float16 rows in the order of a block's ratings. */
export async function gatherRate(
  gpu: Gpu,
  block: DeviceBlock,
  { stride, half }: DeviceMatrix,
): Promise<number> {
  if (half === undefined) throw new Error('there is no half mirror to gather');
  const buffers = [block.indices, half, await gpu.scratch('unlikely', 16)];
  const milliseconds = await timeOfKernel(
    gpu,
    'gather',
    { CHUNKS: stride / 8, RATINGS: block.ratings },
    buffers,
    Math.ceil(block.ratings / RATINGS_A_WORKGROUP),
  );
  return (block.ratings * stride * 2) / milliseconds;
}

/** Milliseconds of a kernel of this folder. */
async function timeOfKernel(
  gpu: Gpu,
  name: string,
  constants: Record<string, number>,
  buffers: readonly GPUBuffer[],
  workgroups: number,
): Promise<number> {
  const module = gpu.device.createShaderModule({
    label: name,
    code: readFileSync(new URL(`${name}.wgsl`, import.meta.url), 'utf8'),
  });
  const pipeline = await gpu.device.createComputePipelineAsync({
    label: name,
    layout: 'auto',
    compute: { module, entryPoint: 'main', constants },
  });
  const entries = buffers.map((buffer, binding): GPUBindGroupEntry => ({ binding, resource: { buffer } }));
  const bindGroup = gpu.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const wide = Math.min(workgroups, 32768);
  return timeOf(gpu, (encoder) => {
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(wide, Math.ceil(workgroups / wide));
    pass.end();
  });
}

/** Milliseconds of a command if eight run consecutively: median of seven, warm. */
async function timeOf(gpu: Gpu, add: (encoder: GPUCommandEncoder) => void): Promise<number> {
  const repeats = 8;
  const run = async () => {
    const encoder = gpu.device.createCommandEncoder();
    for (let i = 0; i < repeats; i++) add(encoder);
    const begin = performance.now();
    gpu.device.queue.submit([encoder.finish()]);
    await gpu.pass('wait').submit();
    return (performance.now() - begin) / repeats;
  };
  for (const begin = performance.now(); performance.now() - begin < 400;) await run();
  const times: number[] = [];
  for (let i = 0; i < 7; i++) times.push(await run());
  return median(times);
}
