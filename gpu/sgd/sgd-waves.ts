import type { DeviceBlock } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { type SgdStepParams, steppedFactors, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * One wave of SGD by wavefront-update (cuMF_SGD, section 3.2.3). Rows and columns are cut into bands. Each
 * workgroup is one team of threads and has a band of rows; in a wave it processes the block of this band and
 * one band of columns. No two workgroups have the same band of columns in a wave, so no locks are needed. See
 * `sgd-waves` of KernelTasks.
 */
export const sgdWavesKernel = kernelOf<Omit<SgdStepParams, 'threads'>>()({
  name: 'sgd-waves',
  reads: {
    /** Index of each block's first rating; row band i and column band j have block i * column_bands + j. */
    starts: 'array<u32>',
    ratings: 'array<u32>',
    /** For each wave, the band of columns of each workgroup; 0xffffffff if it has none in this wave. */
    order: 'array<u32>',
  },
  writes: steppedFactors,
  uniforms: {
    wave: 'u32',
    workers: 'u32',
    column_bands: 'u32',
    rate: 'f32',
    row_lambda: 'f32',
    column_lambda: 'f32',
  },
  needs: ({ lanes }) => teamNeeds(lanes),
  values: (params) => stepValues({ ...params, threads: params.lanes }),
  samples: [
    { features: 34, precision: 'f16', lanes: 4, biases: true, adaptive: true },
    { features: 128, precision: 'f32', lanes: 32, biases: false, adaptive: false },
    { features: 16, precision: 'f32', lanes: 1, biases: false, adaptive: false },
  ],
});

/** First row or column of each band; last, the number of rows or columns. */
interface Bands {
  readonly rowStarts: readonly number[];
  readonly columnStarts: readonly number[];
}

/**
 * The ratings sorted into blocks (a band of rows by a band of columns), as the kernel sgd-waves reads them.
 */
interface WaveBlocks {
  /** Index of each block's first rating; last, the number of ratings: u32[row bands * column bands + 1]. */
  readonly starts: GPUBuffer;
  /** Three words for each rating: row, column, and value as float32 bits. */
  readonly ratings: GPUBuffer;
}

/**
 * Sorts ratings into blocks (a band of rows by a band of columns), and within a block by row and column. The
 * result is cached with the ratings, by the numbers of bands. The order depends only on the ratings and the
 * bands, so it is the same in every run.
 */
export async function waveBlocks(
  gpu: Gpu,
  block: DeviceBlock,
  { rowStarts, columnStarts }: Bands,
): Promise<WaveBlocks> {
  const [rowBands, columnBands] = [rowStarts.length - 1, columnStarts.length - 1];
  const key = `${rowBands} x ${columnBands} bands`;
  const known = block.prepared.get(key) as WaveBlocks | undefined;
  if (known !== undefined) return known;
  if (columnBands > MOST_BANDS)
    throw new Error(`ratings are sorted by at most ${MOST_BANDS} bands of columns, not ${columnBands}`);
  const bandOf = new Uint32Array(columnStarts[columnBands]);
  for (let band = 0; band < columnBands; band++)
    bandOf.fill(band, columnStarts[band], columnStarts[band + 1]);
  const rows = await gpu.bufferOf(Uint32Array.from(rowStarts), 'bands of rows');
  const columns = await gpu.bufferOf(bandOf, 'bands of columns');
  const table = await gpu.buffer(4 * rowBands * columnBands, 'ratings by block');
  try {
    const bindings = {
      offsets: block.rowPointers,
      indices: block.indices,
      values: block.values,
      row_starts: rows,
      band_of: columns,
    };
    const uniforms = { row_bands: rowBands, column_bands: columnBands };
    const count = await gpu.compile(sgdWaveCountKernel, {});
    await gpu
      .pass('count by block')
      .dispatch(count, { ...bindings, counts: table }, uniforms, rowBands)
      .submit();
    const counts = new Uint32Array(rowBands * columnBands);
    await gpu.download(table, counts);
    const starts = new Uint32Array(counts.length + 1);
    counts.forEach((own, at) => (starts[at + 1] = starts[at] + own));
    const blocks: WaveBlocks = {
      starts: await gpu.bufferOf(starts, 'block starts'),
      ratings: await gpu.buffer(12 * block.ratings, 'ratings by block'),
    };
    const scatter = await gpu.compile(sgdWaveScatterKernel, {});
    await gpu
      .pass('sort by block')
      .dispatch(scatter, { ...bindings, ...blocks }, uniforms, rowBands)
      .submit();
    block.prepared.set(key, blocks);
    return blocks;
  } finally {
    for (const buffer of [rows, columns, table]) buffer.destroy();
  }
}

/** Largest number of bands of columns. */
const MOST_BANDS = 2048;

/**
 * First step of sorting ratings into blocks (a band of rows by a band of columns): counts the ratings of each
 * block. Output: `counts` u32[row bands * column bands].
 */
export const sgdWaveCountKernel = kernelOf<Record<string, never>>()({
  name: 'sgd-wave-count',
  reads: {
    offsets: 'array<i32>',
    indices: 'array<u32>',
    /** First row of each band of rows; last, the number of rows. */
    row_starts: 'array<u32>',
    band_of: 'array<u32>',
  },
  writes: { counts: 'array<u32>' },
  uniforms: { row_bands: 'u32', column_bands: 'u32' },
  values: () => ({ THREADS: 256, MOST_BANDS }),
  bytes: 4 * MOST_BANDS,
});

/**
 * Second step of sorting ratings into blocks (a band of rows by a band of columns): copies each rating to its
 * block. Within a block, ratings are sorted by row and then by column.
 */
export const sgdWaveScatterKernel = kernelOf<Record<string, never>>()({
  ...sgdWaveCountKernel,
  name: 'sgd-wave-scatter',
  reads: {
    offsets: 'array<i32>',
    indices: 'array<u32>',
    values: 'array<f32>',
    row_starts: 'array<u32>',
    band_of: 'array<u32>',
    /** Index of each block's first rating in the output. */
    starts: 'array<u32>',
  },
  writes: {
    /** Three words for each rating: row, column, and value as float32 bits. */
    ratings: 'array<u32>',
  },
});
