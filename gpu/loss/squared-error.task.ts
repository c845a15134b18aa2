import type { GpuTaskHandler } from '../handler.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 16;

/**
 * Largest padded rank at which a row's factors fit the registers of the four threads that share its ratings.
 */
const HELD_STRIDE = 256;

/** Ratings that one workgroup sums. */
const ERROR_RATINGS = THREADS * STEPS;

type SquaredErrorParams = {
  /** Elements of a row of factors, with padding. */
  readonly stride: number;
  /**
   * True: predictions include the mean and the biases of row and column. False: the buffers of biases are not
   * read.
   */
  readonly biased: boolean;
  /** True: `column_factors` is the float16 copy of the factors. */
  readonly half: boolean;
};

/**
 * Sums e² and |e| over the ratings [first, last), all ratings of the rows [from_row, to_row); e is the rating
 * minus the prediction. Each workgroup writes these two sums as float32, for ERROR_RATINGS ratings counted
 * from `origin`. There must be at least one rating.
 */
export const squaredErrorKernel = kernelOf<SquaredErrorParams>()({
  name: 'squared-error',
  reads: {
    row_pointers: 'array<i32>',
    indices: 'array<vec4u>',
    values: 'array<f32>',
    row_factors: 'array<vec4f>',
    column_factors: 'array<{{ column_quads }}>',
    row_bias: 'array<f32>',
    column_bias: 'array<f32>',
  },
  writes: { sums: 'array<vec2f>' },
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    first: 'u32',
    last: 'u32',

    /** origin: `first` rounded down to a multiple of 4. base: the mean, read only with biases. */
    origin: 'u32',
    base: 'f32',
  },
  values: ({ stride, biased, half }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
    BIASED: biased,
    HALF: half,
    column_quads: half ? 'vec4u' : 'vec4f',
    /** True: each thread keeps its quarter of a row's factors in registers. */
    HELD: half && stride <= HELD_STRIDE,
    CHUNKS: stride / 8,
    /**
     * True if the chunks of a row (8 features each) do not divide evenly among four threads, so that some
     * threads have one chunk less.
     */
    RAGGED: stride % 32 !== 0,
    parts: range(Math.ceil(stride / (half ? 32 : 16))).map((part) => 4 * part),
  }),
  bytes: 4 * 2 * 4 * (THREADS + 1),
  samples: [
    { stride: 16, biased: true, half: false },
    { stride: 112, biased: false, half: true },
    { stride: 512, biased: true, half: true },
  ],
});

/**
 * The task `squared-error` (see KernelTasks) on a GPU. Each workgroup writes the float32 sums of
 * ERROR_RATINGS ratings; the host adds these in order in float64. If the column factors have a float16 copy,
 * the kernel reads that.
 */
export const squaredError: GpuTaskHandler<'squared-error'> = async (scope) => {
  const { from, to, mean = 0 } = scope.params;
  const { gpu } = scope;
  const block = scope.block('block');
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const [first, last] = [block.offsets[from], block.offsets[to]];
  const values = { squared: 0, absolute: 0, count: last - first };
  if (first === last || scope.cancelled()) return { rows: to - from, values };
  const biased = scope.has('rowBias') && scope.has('columnBias');
  const [rowBias, columnBias] = biased
    ? [scope.vector('rowBias'), scope.vector('columnBias')]
    : [block.values, block.values];
  const kernel = await gpu.compile(squaredErrorKernel, {
    stride: rowFactors.stride,
    biased,
    half: columnFactors.half !== undefined,
  });
  const origin = first - (first % 4);
  const groups = Math.ceil((last - origin) / ERROR_RATINGS);
  // A scratch buffer is used, since creating a buffer would wait for this thread's next turn while the GPU is
  // idle.
  const sums = await gpu.scratch('error sums', 8 * groups);
  const bindings = {
    row_pointers: block.rowPointers,
    indices: block.indices,
    values: block.values,
    row_factors: rowFactors.values,
    column_factors: columnFactors.half ?? columnFactors.values,
    row_bias: rowBias,
    column_bias: columnBias,
    sums,
  };
  const uniforms = { from_row: from, to_row: to, first, last, origin, base: mean };
  const { bytes } = await gpu
    .pass('squared-error')
    .dispatch(kernel, bindings, uniforms, groups)
    .submit({ read: { buffer: sums, bytes: 8 * groups }, submitted: scope.submitted });
  const pairs = new Float32Array(bytes);
  for (let k = 0; k < pairs.length; k += 2) {
    values.squared += pairs[k];
    values.absolute += pairs[k + 1];
  }
  return { rows: to - from, bytesDown: 8 * groups, values };
};
