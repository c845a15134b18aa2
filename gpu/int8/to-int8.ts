import type { DeviceMatrix } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Pass } from '../webgpu/pass.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank } from '../device/slots.ts';
import { int8Bytes, int8Pieces } from './int8-plan.ts';

const THREADS = 256;

/** Rows that one workgroup of column-maxima reads. */
const ROWS = 512;

type Int8Params = { readonly rank: number };

/**
 * Computes the largest |x| of each column of a float16 matrix with `rows` rows, as float32 bits. `maxima`
 * must contain zeros before.
 */
export const columnMaximaKernel = kernelOf<Int8Params>()({
  name: 'column-maxima',
  bindings: [...reads({ half: 'array<vec2u>' }), ...writes({ maxima: 'array<atomic<u32>>' })],
  uniforms: { rows: 'u32' },
  values({ rank }) {
    const quads = paddedRank(rank) / 4;
    const teams = Math.floor(THREADS / quads);
    return { THREADS: teams * quads, ROWS, QUADS: quads, TEAMS: teams };
  },
  workgroup: ({ rank }) => ({
    threads: Math.floor((4 * THREADS) / paddedRank(rank)) * (paddedRank(rank) / 4),
    bytes: 4 * paddedRank(rank),
  }),
  samples: [{ rank: 100 }],
});

/**
 * Rounds the float16 copy of a matrix to 8 bits. Each column has a scale, 1/127 of its largest |x|; an
 * element is its 8-bit number times the scale. `rounded` has `rows` + 1 rows of int8Pieces groups of 16
 * bytes, and the last row is 0.
 */
export const toInt8Kernel = kernelOf<Int8Params>()({
  name: 'to-int8',
  bindings: [
    ...reads({ half: 'array<vec2u>', maxima: 'array<vec4f>' }),
    ...writes({ rounded: 'array<vec4u>', scales: 'array<vec4f>' }),
  ],
  uniforms: { rows: 'u32' },
  values: ({ rank }) => ({ THREADS, QUADS: paddedRank(rank) / 4, PIECES: int8Pieces(rank) }),
  samples: [{ rank: 100 }],
});

/**
 * Adds to a pass the kernels that round the float16 copy of a matrix to 8 bits. Returns their outputs, which
 * are scratch buffers: they may be overwritten after the pass has ended.
 */
export async function addInt8(
  gpu: Gpu,
  pass: Pass,
  { rows, columns: rank, half }: Pick<DeviceMatrix, 'rows' | 'columns' | 'half'>,
): Promise<{ readonly rounded: GPUBuffer; readonly scales: GPUBuffer }> {
  if (half === undefined) throw new Error('this matrix has no half mirror to round to 8 bits');
  const stride = paddedRank(rank);
  const [scales, rounded] = [
    await gpu.scratch('scales of columns', 4 * stride),
    await gpu.scratch('mirror in 8 bits', int8Bytes(rows, rank)),
  ];
  const maxima = await addColumnMaxima(gpu, pass, { rows, rank, half });
  pass.dispatch(
    await gpu.compile(toInt8Kernel, { rank }),
    { half, maxima, rounded, scales },
    { rows },
    Math.ceil(((rows + 1) * int8Pieces(rank)) / THREADS),
  );
  return { rounded, scales };
}

/**
 * Adds to a pass the kernel that finds the largest |x| of each column of a half mirror. Returns its output, a
 * scratch buffer that the next use overwrites.
 */
export async function addColumnMaxima(
  gpu: Gpu,
  pass: Pass,
  { rows, rank, half }: { readonly rows: number; readonly rank: number; readonly half: GPUBuffer },
): Promise<GPUBuffer> {
  const stride = paddedRank(rank);
  const maxima = await gpu.scratch('column maxima', 4 * stride);
  gpu.device.queue.writeBuffer(maxima, 0, new Uint32Array(stride));
  pass.dispatch(
    await gpu.compile(columnMaximaKernel, { rank }),
    { half, maxima },
    { rows },
    Math.ceil(rows / ROWS),
  );
  return maxima;
}
